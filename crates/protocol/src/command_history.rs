//! Parameters and answers of the methods that work on files and history.

use crate::event::Seq;
use crate::ids::SessionId;
use serde::{Deserialize, Serialize};

/// `session.diff`: the changes that the session made to files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct DiffParams {
    /// The session.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// Only the changes of this turn: its id, a prefix or suffix of it, or `last`.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub turn: Option<String>,
    /// Only the changes between two events, `SEQ..SEQ`: all that were recorded, also those of others.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub at: Option<String>,
}

/// `session.undo`: puts files back as they were before a change; by default the last change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct UndoParams {
    /// The session.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// The change: its undo id or a prefix of it.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub change: Option<String>,
    /// All changes of a turn: its id, a prefix or suffix of it, or `last`.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub turn: Option<String>,
    /// Also puts back files that someone else has changed since; those changes are lost.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub force: bool,
    /// Only reports what the undo would do.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub dry_run: bool,
    /// Idempotency key.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub key: Option<String>,
}

/// `session.rewind`: puts the conversation back to an earlier point.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RewindParams {
    /// The session.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// The seq of the last event to keep.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub at: Seq,
    /// Also puts back the files that the session has changed since.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub files: bool,
    /// Also puts back files that someone else has changed since; those changes are lost.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub force: bool,
    /// Only reports what the rewind would do.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub dry_run: bool,
    /// Idempotency key.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub key: Option<String>,
}

/// `session.fork`: a new session whose log starts as a copy of this one's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ForkParams {
    /// The session to copy.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// The seq of the last event to copy; default: the latest possible.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub at: Option<Seq>,
    /// The title of the new session; default: the old title.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub title: Option<String>,
    /// Idempotency key.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub key: Option<String>,
}

/// `session.files`: the files of a session's directory as they were recorded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct FilesParams {
    /// The session.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// The seq of the event at which; default: the end of the log.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub at: Option<Seq>,
}

/// Answer of `session.files`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RecordedFiles {
    /// The id of the git tree that has the files.
    pub tree: String,
    /// The files, by path; at most 10,000.
    pub files: Vec<RecordedFile>,
    /// The number of files that are not listed.
    pub more: u64,
}

/// One file of a [`RecordedFiles`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RecordedFile {
    /// Its path.
    pub path: String,
    /// As git writes it: 100644, 100755 for a file that can be executed, 120000 for a symbolic link.
    pub mode: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The id of its content as a git object.
    pub content: String,
}

/// Answer of `session.diff`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Diffed {
    /// The files that differ from their original state.
    pub files: Vec<FileDiff>,
    /// Effects that a diff cannot show: commands, requests to the network.
    pub stays: Vec<String>,
}

/// One file of a [`Diffed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileDiff {
    /// Its path.
    pub path: String,
    /// `added`, `deleted` or `modified`.
    pub status: String,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// The unified diff.
    pub diff: String,
    /// The sub-agents that changed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<SessionId>,
}

/// Answer of `session.undo` and `session.rewind`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PutBackDone {
    /// The session.
    pub session: SessionId,
    /// The seq of the event that began the work; 0 if nothing was done (`dry_run`).
    pub seq: Seq,
    /// The files that were put back, or would be.
    pub files: Vec<String>,
    /// With `dry_run`: files that someone else has changed since.
    pub conflicts: Vec<String>,
    /// The id under which the undo itself can be undone.
    pub undo_id: String,
    /// The point to which the conversation went back, or would go back.
    pub rewound_to: Option<Seq>,
    /// Effects that cannot be undone.
    pub stays: Vec<String>,
}
