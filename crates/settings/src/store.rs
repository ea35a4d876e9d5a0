//! `[store]`: where sessions are stored, and the URLs of the backends.

use serde::{Deserialize, Serialize};

/// `[store]`: where sessions are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// `sqlite:PATH`, `memory:` or `postgres://…`.
    pub url: String,
    /// The environment variable that holds the password of a `postgres://` URL; empty: none.
    pub password_env: String,
    /// The file that holds the password; surrounding white space is removed. Empty: none.
    pub password_file: String,
    /// Mirror each session into one JSONL file of this directory; empty: no mirror.
    pub jsonl_dir: String,
}

impl StoreConfig {
    /// The kind of store that the URL names, if it is valid.
    #[must_use]
    pub fn kind(&self) -> Option<StoreKind> {
        match self.url.split_once(':')? {
            ("sqlite", path) if !path.is_empty() => Some(StoreKind::Sqlite),
            ("memory", "") => Some(StoreKind::Memory),
            ("postgres" | "postgresql", rest) if rest.starts_with("//") => Some(StoreKind::Postgres),
            _ => None,
        }
    }
}

/// The kinds of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// A database file of one daemon.
    Sqlite,
    /// The daemon's memory.
    Memory,
    /// A database that several nodes share.
    Postgres,
}

impl StoreKind {
    /// The URLs of all kinds, for error messages.
    pub(crate) const URLS: &str = "sqlite:PATH, memory: or postgres://USER@HOST/DATABASE";
}
