//! The answer of `node.reload`.

use serde::{Deserialize, Serialize};

/// The effect of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reloaded {
    /// The files that the daemon read.
    pub files: Vec<String>,
    /// The keys whose values changed.
    pub changed: Vec<String>,
    /// Changes in the files that take effect only after a restart.
    pub restart: Vec<String>,
    /// Models that were removed, and stay for the turns that use them until those end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// How many sessions waited for a credential and now try again.
    pub tried: u64,
}
