//! Tests of every backend, and shared helpers.

/// Runs each function over every backend.
macro_rules! conformance {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $name() { super::$name(super::Kit::memory()).await; })*
        }
        mod sqlite {
            $(#[tokio::test] async fn $name() { super::$name(super::Kit::sqlite()).await; })*
        }
    };
}

/// Runs each function over a migration between two files: the tests of PostgreSQL run them in both directions.
macro_rules! migrations {
    ($($name:ident),* $(,)?) => {
        mod sqlite_to_sqlite {
            $(#[tokio::test] async fn $name() {
                super::$name(super::DatabaseFile::default(), super::DatabaseFile::default()).await;
            })*
        }
    };
}

mod conformance;
mod jsonl;
pub(crate) mod kit;
mod migrations;
mod tokens;
