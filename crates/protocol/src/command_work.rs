//! Parameters and answers of the methods that bring a session's changes to where they are wanted.

use serde::{Deserialize, Serialize};

/// `session.apply`: applies a session's changes of files to another directory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ApplyParams {
    /// The session.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// The absolute path of the directory.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub to: String,
    /// Only reports what would be changed.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub dry_run: bool,
}

/// `session.branch`: makes a git branch of a session's changes of files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BranchParams {
    /// The session.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// The name of the new branch.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub name: String,
    /// The message of the commit; default: the session's title and the model's last words.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub message: Option<String>,
    /// Push the branch to this URL, which `workspace.push` must list, instead of making it in the local repository.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub push: Option<String>,
}

/// `session.patch`: a session's changes of files, as a patch or a bundle.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PatchParams {
    /// The session.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// A git bundle that has a branch of this name, instead of a patch.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub bundle: Option<String>,
}

/// Answer of `session.apply`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct AppliedTo {
    /// The directory.
    pub to: String,
    /// The files that were changed, or would be.
    pub files: Vec<String>,
    /// Those among them that had other changes, too: both were merged.
    pub merged: Vec<String>,
}

/// Answer of `session.branch`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Branched {
    /// The directory whose repository has the branch: for a session with a workspace of its own, that which it was made from.
    pub repository: String,
    /// The branch.
    pub branch: String,
    /// Its commit.
    pub commit: String,
    /// The commit before it.
    pub base: String,
    /// The number of files that differ.
    pub files: u64,
}

/// Answer of `session.patch`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Patch {
    /// The patch or the bundle, in base64.
    pub data: String,
}
