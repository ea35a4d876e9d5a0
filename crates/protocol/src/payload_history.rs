//! Payloads of events about work on files and history: undoing, going back, forking.

use crate::event::Seq;
use crate::ids::SessionId;
use crate::payload_plan::PlanThen;
use crate::payload_talk::TodoItem;
use serde::{Deserialize, Serialize};

/// One file as it shall be again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileBack {
    /// Its path, relative to the working directory.
    pub path: String,
    /// The hash of the content that it should have now; absent: it should not be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// The hash of the content that it gets, also the name of the blob; absent: it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The permission bits of a file that is made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// One file that was changed, as `details.changes` of tools on files say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChanged {
    /// Its path.
    pub path: String,
    /// The hash of its content before; absent: it was not there.
    #[serde(default)]
    pub before_sha256: Option<String>,
    /// The hash of its content afterwards; absent: it is gone.
    #[serde(default)]
    pub after_sha256: Option<String>,
    /// Its permission bits before.
    #[serde(default)]
    pub mode: Option<u32>,
}

/// A change that a sub-agent made, where its own log tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChangeBelow {
    /// The sub-agent.
    pub session: SessionId,
    /// The seq there.
    pub seq: Seq,
}

/// `history.started`: files are about to be put back, or the conversation is about to go back; durable before it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HistoryStarted {
    /// The changes that are undone, by their seq.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<Seq>,
    /// Those of sub-agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes_below: Vec<ChangeBelow>,
    /// The files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileBack>,
    /// Also files that somebody changed since: what they did is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The conversation goes back to this point, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewind_to: Option<Seq>,
    /// The list of things to do as it was at that point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo: Vec<TodoItem>,
    /// The plan as it was at that point.
    #[serde(default, skip_serializing_if = "PlanThen::is_none")]
    pub plan: PlanThen,
    /// What was done since and stays done: commands, requests to the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<String>,
}

/// `history.failed`: nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryFailed {
    /// A stable word.
    pub code: String,
    /// What is in the way.
    pub message: String,
}

/// `undo.applied`: files are as they were before some changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoApplied {
    /// The changes that were undone, by their seq.
    #[serde(default)]
    pub undoes: Vec<Seq>,
    /// Those of sub-agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes_below: Vec<ChangeBelow>,
    /// Under this name it can be undone, too; empty when every file was so already.
    #[serde(default)]
    pub undo_id: String,
    /// The files.
    #[serde(default)]
    pub changes: Vec<FileChanged>,
}

/// `session.rewound`: the conversation is as it was at an earlier point. The log keeps what came between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRewound {
    /// What came after this one is not part of the conversation any more ...
    pub to_seq: Seq,
    /// ... up to this one.
    pub from_seq: Seq,
    /// The list of things to do as it was then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo: Vec<TodoItem>,
    /// The plan as it was then.
    #[serde(default, skip_serializing_if = "PlanThen::is_none")]
    pub plan: PlanThen,
    /// What stays done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<String>,
}

/// `session.forked`: the log up to here is a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionForked {
    /// The session that it was copied from.
    pub from: SessionId,
    /// Its last event that was copied.
    pub at_seq: Seq,
}
