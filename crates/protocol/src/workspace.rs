//! Workspaces: the directory that a session works in, and how it came to be.

use crate::ids::SessionId;
use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};

/// How the working directory of a session comes to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceChoice {
    /// A clone in a git repository, the directory itself elsewhere.
    #[default]
    Auto,
    /// The directory itself, together with everyone else who works there.
    Shared,
    /// A git worktree of the repository, on a branch of the session's own.
    Worktree,
    /// A clone of the repository that borrows its objects.
    Clone,
    /// A copy of the directory.
    Copy,
}

/// The kind of a session's own workspace. A session in a shared directory has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceKind {
    /// A git worktree; its branch and its objects are in the repository that it belongs to.
    Worktree,
    /// A clone that borrows the objects of another repository.
    Clone,
    /// A copy without git.
    Copy,
}

impl WorkspaceKind {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Worktree => "worktree",
            Self::Clone => "clone",
            Self::Copy => "copy",
        }
    }
}

impl std::fmt::Display for WorkspaceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WorkspaceRequest {
    /// The kind; default: the node's setting for this directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<WorkspaceChoice>,
    /// Clone this URL instead of `workdir`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The branch, tag or commit to begin at; default: the one that is checked out, or the default branch of `repo`.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Bring the uncommitted changes of `workdir` along, ignored files excepted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub with_changes: bool,
}

/// A session's own workspace, as it was made. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Workspace {
    /// How it was made.
    pub kind: WorkspaceKind,
    /// The directory (for a repository, the top of its work tree) or the URL that it was made from.
    pub source: String,
    /// The absolute path of the workspace: the working directory.
    pub path: String,
    /// The commit that it began at; absent without git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The branch that it began on, without `refs/heads/`; absent without git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The repository whose objects it uses: git's common directory of the source, or agentd's mirror of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// It began with the uncommitted changes of its source.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_changes: bool,
    /// Parts of the source that are missing, in words: the contents of submodules and of Git LFS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// `workspace.list`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WorkspaceListParams {
    /// Also measures the disk space, and looks for work that was not fetched. This reads every file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub measure: bool,
}

/// `workspace.prune`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WorkspacePruneParams {
    /// Only the workspaces of these sessions; none: of all that are closed or gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Only those whose sessions last changed at least this many days ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
    /// Also removes work that was not fetched.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Removes nothing and only says what would go.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A workspace on this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkspaceRow {
    /// The session that it was made for.
    pub session: SessionId,
    /// The name of the session; absent: there is no such session any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The state of the session, `gone` without one.
    pub state: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// What it is.
    #[serde(flatten)]
    pub workspace: Workspace,
    /// Bytes on disk, without borrowed objects; absent if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Files, directories and links; absent if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// The work that was not fetched, in words; absent if there is none, or if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfetched: Option<String>,
}

/// Answer of `workspace.prune`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkspacePruned {
    /// The removed ones; with `dry_run`, those that would be removed.
    pub removed: Vec<WorkspaceRow>,
    /// The requested ones that stay, and why.
    pub kept: Vec<WorkspaceKept>,
}

/// A workspace that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkspaceKept {
    /// Its session.
    pub session: SessionId,
    /// Why, in words.
    pub reason: String,
}
