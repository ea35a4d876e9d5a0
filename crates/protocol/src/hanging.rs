//! File systems that do not respond, as `node.status` reports them.

use serde::{Deserialize, Serialize};

/// A file system in which calls hang: their callers have stopped waiting, but the calls do not return.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HangingFiles {
    /// Where it is mounted.
    pub mount: String,
    /// How long it has not responded at all, in milliseconds; absent if it responds and only some calls hang.
    pub silent_ms: Option<u64>,
    /// How many calls hang.
    pub calls: u64,
    /// The callers: ids of sessions, or directories of sessions that are being created.
    pub who: Vec<String>,
}
