//! What a client is told of a tool server.

use serde::{Deserialize, Serialize};

/// One row of `mcp.list`: a tool server where it runs or ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRow {
    /// Its name.
    pub server: String,
    /// Its working directory; nothing when it is shared or was not used yet.
    pub workdir: Option<String>,
    /// `stopped`, `starting`, `running` or `failed`.
    pub state: String,
    /// Calls that it works on.
    pub busy: u64,
    /// Tools that it offers, as far as known.
    pub tools: u64,
    /// How often it was started again.
    pub restarts: u64,
    /// How it failed last.
    pub last_error: Option<String>,
}
