//! Payloads of events about files and history: undo, rewind, fork.

use crate::event::Seq;
use crate::ids::SessionId;
use crate::payload_files::TreeChanged;
use crate::payload_plan::PlanThen;
use crate::payload_todos::TodoItem;
use serde::{Deserialize, Serialize};

/// One file and the state that it is put back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileBack {
    /// Its path, relative to the working directory.
    pub path: String,
    /// The hash of the content that the file should have now; absent: the file should not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// The hash of the new content, also the name of its blob; absent: the file is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The permission bits of a file that is created again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// One changed file, as in `details.changes` of the file tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileChanged {
    /// Its path.
    pub path: String,
    /// The hash of its content before; absent: it did not exist.
    #[serde(default)]
    pub before_sha256: Option<String>,
    /// The hash of its content afterwards; absent: it was deleted.
    #[serde(default)]
    pub after_sha256: Option<String>,
    /// Its permission bits before.
    #[serde(default)]
    pub mode: Option<u32>,
}

/// A change that a sub-agent made, by its place in the sub-agent's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChangeBelow {
    /// The sub-agent.
    pub session: SessionId,
    /// The seq in the log of the sub-agent.
    pub seq: Seq,
}

/// `history.started`: files or the conversation are about to be put back; durable before that happens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HistoryStarted {
    /// The changes to undo, by their seq.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<Seq>,
    /// The changes of sub-agents to undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes_below: Vec<ChangeBelow>,
    /// The files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileBack>,
    /// Instead of single files: recorded changes of the working directory to revert, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<TreeChanged>,
    /// Also puts back files that someone else has changed since; those changes are lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The conversation also goes back to this point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewind_to: Option<Seq>,
    /// The list of things to do as it was at that point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo: Vec<TodoItem>,
    /// The plan as it was at that point.
    #[serde(default, skip_serializing_if = "PlanThen::is_none")]
    pub plan: PlanThen,
    /// Effects since then that cannot be undone: commands, requests to the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<String>,
}

/// `history.failed`: nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HistoryFailed {
    /// A stable code.
    pub code: String,
    /// The obstacle.
    pub message: String,
}

/// `undo.applied`: files are back as they were before some changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UndoApplied {
    /// The changes that were undone, by their seq.
    #[serde(default)]
    pub undoes: Vec<Seq>,
    /// The undone changes of sub-agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes_below: Vec<ChangeBelow>,
    /// The id under which this undo itself can be undone; empty if every file was already in that state.
    #[serde(default)]
    pub undo_id: String,
    /// The files.
    #[serde(default)]
    pub changes: Vec<FileChanged>,
    /// The change of the working directory, if recorded changes were reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trees: Option<TreeChanged>,
    /// The paths in that change; at most a few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

/// `session.rewound`: the conversation is back at an earlier point. The log keeps what came in between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionRewound {
    /// The events after this one no longer belong to the conversation ...
    pub to_seq: Seq,
    /// ... up to this one.
    pub from_seq: Seq,
    /// The list of things to do as it was then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo: Vec<TodoItem>,
    /// The plan as it was then.
    #[serde(default, skip_serializing_if = "PlanThen::is_none")]
    pub plan: PlanThen,
    /// Effects that cannot be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<String>,
}

/// `session.forked`: the log up to here is a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionForked {
    /// The session that was copied.
    pub from: SessionId,
    /// The last event that was copied.
    pub at_seq: Seq,
}
