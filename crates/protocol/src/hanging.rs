//! What `node.status` says of file systems that do not answer.

use serde::{Deserialize, Serialize};

/// A file system in which calls hang: nobody waits for them any more, and they do not end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HangingFiles {
    /// Where it is mounted.
    pub mount: String,
    /// For how long it has not answered at all, in milliseconds; absent when it answers and only some calls hang.
    pub silent_ms: Option<u64>,
    /// How many calls hang.
    pub calls: u64,
    /// Whose they are: ids of sessions, or directories of sessions that are being created.
    pub who: Vec<String>,
}
