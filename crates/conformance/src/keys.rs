//! Request keys that we do not model, each with the reason. No other key may differ.

mod listed;

use crate::json::{has, remove};
use agentd_provider::Dialect;
pub use listed::KEYS;
use serde_json::Value;

/// On which side a key is ignored in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// On both sides.
    Both,
    /// Only on ours, if the recording does not have it: we send it explicitly, the recording relied on the default.
    Added,
}

/// Keys that are ignored in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The dialect.
    pub dialect: Dialect,
    /// The side.
    pub side: Side,
    /// The paths of the keys.
    pub paths: &'static [&'static str],
    /// The reason.
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

/// Removes the listed keys from both sides.
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
