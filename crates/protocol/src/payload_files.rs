//! Payloads of events about recorded files.

use serde::{Deserialize, Serialize};

/// `workspace.checkpointed`: the files of the working directory were recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkspaceCheckpointed {
    /// The id of the git tree that has the files.
    pub tree: String,
    /// Files that were left out, with the reason; at most a few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// A change of the working directory, from one recorded tree to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TreeChanged {
    /// The files before.
    pub before: String,
    /// The files after.
    pub after: String,
}
