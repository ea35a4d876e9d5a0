//! Parameters and answers of the methods that work on files and history.

use crate::event::Seq;
use crate::ids::SessionId;
use serde::{Deserialize, Serialize};

/// `session.diff`: what the session changed in files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiffParams {
    /// Which.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// Only what this turn changed: its id, or the beginning or end of it, or `last`.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub turn: Option<String>,
}

/// `session.undo`: files as they were before a change. The last change, unless another is named.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UndoParams {
    /// Which.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// The change, by its undo id or the beginning of it.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub change: Option<String>,
    /// All changes of a turn: its id, or the beginning or end of it, or `last`.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub turn: Option<String>,
    /// Also files that somebody changed since; what they did is lost.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub force: bool,
    /// Only say what would be done.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub dry_run: bool,
    /// Idempotency key.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub key: Option<String>,
}

/// `session.rewind`: the conversation as it was at an earlier point.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewindParams {
    /// Which.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// The seq of the last event that counts.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub at: Seq,
    /// The files that the session changed since, too.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub files: bool,
    /// Also files that somebody else changed since; what they did is lost.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub force: bool,
    /// Only say what would be done.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub dry_run: bool,
    /// Idempotency key.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub key: Option<String>,
}

/// `session.fork`: a new session whose log begins as this one's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ForkParams {
    /// Which.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub session: String,
    /// The seq of the last event that is copied; default: as late as possible.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub at: Option<Seq>,
    /// What people call the new one; default: as the old one.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub title: Option<String>,
    /// Idempotency key.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub key: Option<String>,
}

/// Answer of `session.diff`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diffed {
    /// The files that are not as they were.
    pub files: Vec<FileDiff>,
    /// What was done besides and is not seen here: commands, requests to the network.
    pub stays: Vec<String>,
}

/// One file of a [`Diffed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileDiff {
    /// Its path.
    pub path: String,
    /// `added`, `deleted` or `modified`.
    pub status: String,
    /// Lines that came.
    pub added: u64,
    /// Lines that went.
    pub removed: u64,
    /// The unified diff.
    pub diff: String,
    /// The sub-agents that changed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<SessionId>,
}

/// Answer of `session.undo` and `session.rewind`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PutBackDone {
    /// The session.
    pub session: SessionId,
    /// The seq of the beginning of the work; 0 when nothing was done (`dry_run`).
    pub seq: Seq,
    /// The files that were put back, or would be.
    pub files: Vec<String>,
    /// With `dry_run`: files that somebody changed since.
    pub conflicts: Vec<String>,
    /// Under this name the undo can be undone.
    pub undo_id: String,
    /// The point that the conversation went back to, or would.
    pub rewound_to: Option<Seq>,
    /// What stays done.
    pub stays: Vec<String>,
}
