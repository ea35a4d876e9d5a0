//! The actors of the node and its indexes, as `node.diagnostics` shows them.

use serde::Serialize;

/// A singleton actor or a service of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActorRow {
    /// Its name.
    pub name: String,
    /// Whether it runs. A failed one is restarted.
    pub running: bool,
    /// How often it was restarted since the daemon started.
    pub restarts: u64,
    /// What it works on, such as model calls or sessions; absent if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<u64>,
    /// What waits for a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<u64>,
    /// How long a message waited for its answer, in microseconds: long if its mailbox is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_us: Option<u64>,
}

/// The search index of a directory that this daemon keeps up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexRow {
    /// The directory.
    pub workdir: String,
    /// `current`, `indexing`, `waiting` or `failed`.
    pub state: &'static str,
    /// Files that the last pass saw.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// Why the last pass failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}
