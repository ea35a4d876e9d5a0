//! `[control]`, `[limits]`, `[log]`, `[node]`: the daemon itself.

use agentd_protocol::Labels;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// `[control]`: what clients on the control socket may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlConfig {
    /// Whether clients on the Unix socket may answer approvals.
    pub local_approvals: bool,
}

/// `[limits]`: resource limits of clients and sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    /// Concurrent control connections.
    pub connections: u32,
    /// How many of these only processes without a connection can take; at most half.
    pub connections_reserved: u32,
    /// The largest frame; a larger one closes the connection.
    pub max_frame_bytes: u64,
    /// Bytes of all large frames and bodies that are being read or answered, over all connections of all transports;
    /// further ones wait.
    pub frames_bytes: u64,
    /// Bytes of all model answers that are being received, over all sessions. A call that needs more fails and is tried
    /// again.
    pub answers_bytes: u64,
    /// The largest input; a larger one is refused.
    pub max_input_bytes: u64,
    /// Inputs that may wait in one session.
    pub queue_inputs: u32,
    /// Sessions in memory.
    pub sessions_hot: u32,
    /// Frames kept for a slow viewer.
    pub attach_ring: u32,
    /// Bytes kept for a slow viewer.
    pub attach_ring_bytes: u64,
    /// The largest blob.
    pub blob_bytes: u64,
    /// Rows of one list answer.
    pub list_rows: u32,
    /// Concurrent file calls of one session.
    pub session_files: u32,
    /// Concurrent file calls on one file system.
    pub filesystem_files: u32,
}

/// `[log]`: the side files of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// A tracing filter: `info`, `debug`, `info,agentd_store=debug`.
    pub level: String,
    /// Rotate a file at this size.
    pub max_bytes: u64,
    /// Files kept of each kind.
    pub files: u32,
    /// Write `trace.jsonl`.
    pub trace: bool,
    /// Write `audit.jsonl`.
    pub audit: bool,
    /// Full audit files to keep; 0: all.
    pub audit_files: u32,
}

/// `[node]`: this daemon's identity, paths and timing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// The name of this node; empty: the host's name.
    pub name: String,
    /// The data directory; empty: the user's default.
    pub data_dir: String,
    /// The control socket; empty: in the runtime directory, else in the data directory.
    pub socket: String,
    /// An idle session leaves memory after this time.
    #[serde(with = "crate::duration::plain")]
    pub idle_passivate: Duration,
    /// Sessions to wake per second, so that a restart does not cause a load spike.
    pub wake_per_second: u32,
    /// How long a drain waits for running calls.
    #[serde(with = "crate::duration::plain")]
    pub drain_timeout: Duration,
    /// How long this node counts as alive without a sign of life; then other nodes take over its sessions.
    #[serde(with = "crate::duration::plain")]
    pub ttl: Duration,
    /// The URL at which other nodes reach the HTTP API of this node; empty: the address at which it listens.
    pub address: String,
    /// Directories that other nodes have, too: sessions below them may go on at any node that names them.
    pub shared_paths: Vec<String>,
    /// What sessions may require of this node: `gpu = "yes"`.
    pub labels: Labels,
}

/// Whether this can be compared with working directories, which have no links and no `..`.
pub(crate) fn is_plain_path(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let plain =
        parts.next() == Some(Component::RootDir) && parts.all(|part| matches!(part, Component::Normal(_)));
    let tidy = Path::new(path).components().collect::<PathBuf>();
    plain && tidy.to_str() == Some(path) && !path.contains('\0')
}

impl NodeConfig {
    /// A shared path that is not plain.
    pub(crate) fn bad_shared_path(&self) -> Option<&str> {
        let mut paths = self.shared_paths.iter().map(String::as_str);
        paths.find(|path| !is_plain_path(path))
    }
}
