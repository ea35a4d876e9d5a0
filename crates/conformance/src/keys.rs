//! The keys of requests that we do not model, each with its reason. Nothing else may differ.

mod listed;

use crate::json::{has, remove};
use agentd_provider::Dialect;
pub use listed::KEYS;
use serde_json::Value;

/// On which side a key is left out of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// On both.
    Both,
    /// On ours, where the recording has none: we say it, and the recording left it to the default.
    Added,
}

/// Keys that are left out of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Of which dialect.
    pub dialect: Dialect,
    /// On which side.
    pub side: Side,
    /// Where they stand.
    pub paths: &'static [&'static str],
    /// Why.
    pub reason: &'static str,
}

const fn both(dialect: Dialect, paths: &'static [&'static str], reason: &'static str) -> Key {
    Key {
        dialect,
        side: Side::Both,
        paths,
        reason,
    }
}

const fn added(dialect: Dialect, paths: &'static [&'static str], reason: &'static str) -> Key {
    Key {
        dialect,
        side: Side::Added,
        paths,
        reason,
    }
}

/// Takes the listed keys out of both sides.
pub(crate) fn strip(dialect: Dialect, recorded: &mut Value, ours: &mut Value) {
    for key in KEYS.iter().filter(|key| key.dialect == dialect) {
        for path in key.paths {
            match key.side {
                Side::Both => {
                    remove(recorded, path);
                    remove(ours, path);
                }
                Side::Added if has(recorded, path) => {}
                Side::Added => remove(ours, path),
            }
        }
    }
}
