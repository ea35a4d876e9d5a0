//! The answer of `node.status`.

use crate::hanging::HangingFiles;
use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};

/// Answer of `node.status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeStatus {
    /// The node's name.
    pub node: String,
    /// Version of the program.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// When the daemon started.
    pub started_at: Timestamp,
    /// Whether the node is draining.
    pub draining: bool,
    /// The control socket.
    pub socket: String,
    /// The HTTP address as a URL, or `off`; empty from daemons without HTTP.
    #[serde(default)]
    pub http: String,
    /// The store's URL without secrets.
    pub store: String,
    /// The data directory.
    pub data_dir: String,
    /// The default model, and why it is the default.
    pub model: String,
    /// The sandbox level and the number of its gaps; empty from daemons that do not report it.
    #[serde(default)]
    pub sandbox: String,
    /// Sessions with an actor.
    pub hot: u64,
    /// Sessions in the store, closed ones included.
    pub sessions: u64,
    /// Open connections.
    pub connections: u64,
    /// Restarts of singleton actors since the start.
    pub restarts: u64,
    /// File systems in which calls hang.
    #[serde(default)]
    pub hanging: Vec<HangingFiles>,
}
