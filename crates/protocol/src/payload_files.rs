//! Payloads of events about recorded files.

use crate::event::Seq;
use crate::workspace::Workspace;
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
    /// What of them is new in the store (`workspace.keep = "store"`); absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptFiles>,
    /// Why the store has no copy of these files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
}

/// Recorded files that the store keeps, so that another machine can bring them back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeptFiles {
    /// Git packs with what is new since the files that were kept before. Each is the names of the blobs that it consists of,
    /// in their order.
    pub packs: Vec<Vec<String>>,
    /// Their bytes.
    pub bytes: u64,
}

/// `workspace.restored`: the workspace was not on this machine, and was made again with the files that the store kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkspaceRestored {
    /// The workspace.
    pub workspace: Workspace,
    /// The recorded files that it has.
    pub tree: String,
    /// The event that recorded them.
    pub as_of: Seq,
    /// What is not in these files: calls that ran later, and commits; in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
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

/// `workspace.created`: from here on, the session works in a workspace other than the one before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkspaceCreated {
    /// The workspace.
    pub workspace: Workspace,
    /// The recorded files that it began with; absent: those of its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// `workspace.prepared`: the setup commands of the workspace have run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkspacePrepared {
    /// The commands that ran, in order; the last one may have failed.
    pub commands: Vec<SetupCommand>,
    /// Why the workspace is not set up. The next turn runs all commands again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl WorkspacePrepared {
    /// No command could run.
    #[must_use]
    pub fn not_run(why: &str) -> Self {
        Self {
            commands: Vec::new(),
            error: Some(format!("could not set up the workspace: {why}")),
        }
    }
}

/// A setup command that has run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SetupCommand {
    /// The configured command.
    pub command: String,
    /// Its exit code; absent after a signal, and if its time was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The end of its output, without known credentials.
    pub output: String,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

/// How the changes of a session leave its working directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TransferKind {
    /// `session.apply`: into another directory.
    Apply,
    /// `session.branch`: as a branch of the repository that the session works on.
    Branch,
    /// `session.branch` with `push`: as a branch of a repository elsewhere.
    Push,
}

/// `transfer.started`: agentd is about to bring the changes of the session elsewhere; durable before that happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TransferStarted {
    /// How.
    pub kind: TransferKind,
    /// The directory, the repository or the URL, without credentials.
    pub to: String,
    /// The new branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `transfer.finished`: the outcome. If it is missing, agentd stopped meanwhile, and the outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TransferFinished {
    /// The seq of the `transfer.started`.
    pub started: Seq,
    /// The number of files that changed there.
    pub files: u64,
    /// The new commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Why nothing was brought there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
