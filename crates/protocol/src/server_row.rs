//! A tool server, as clients see it.

use serde::{Deserialize, Serialize};

/// One row of `mcp.list`: a tool server in one of the places where it runs or ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServerRow {
    /// Its name.
    pub server: String,
    /// Its working directory; none if it is shared or has not been used yet.
    pub workdir: Option<String>,
    /// `stopped`, `starting`, `running` or `failed`.
    pub state: String,
    /// Calls in progress.
    pub busy: u64,
    /// Tools that it offers, as far as they are known.
    pub tools: u64,
    /// How many times it was restarted.
    pub restarts: u64,
    /// Its last error.
    pub last_error: Option<String>,
}
