//! The suite of all backends over SQLite, and what only a file can do wrong.

/// Runs each function over a database file.
macro_rules! conformance {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() { super::$name(super::Kit::sqlite()).await; })*
        }
    };
}

/// Runs each function over a source of new stores in files.
macro_rules! jsonl {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() { super::$name(super::Kit::sqlite).await; })*
        }
    };
}

#[path = "../../store/src/tests/conformance.rs"]
mod conformance;
#[path = "../../store/src/tests/jsonl.rs"]
mod jsonl;
#[path = "../../store/src/tests/kit.rs"]
pub(crate) mod kit;
pub(crate) mod sqlite;
#[path = "../../store/src/tests/tokens.rs"]
mod tokens;

use agentd_store::Options;
use kit::{Kit, moving_clock};

impl Kit {
    pub(crate) fn sqlite() -> Self {
        Self::sqlite_with(0)
    }

    pub(crate) fn sqlite_with(max_bytes: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (clock, now) = moving_clock();
        let options = Options {
            clock,
            max_bytes,
            ..Options::default()
        };
        let log = crate::open("sqlite:agentd.db", dir.path(), options).unwrap();
        Self::new(dir, log, now)
    }
}
