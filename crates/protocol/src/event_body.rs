//! All event types, by their names in the contract.

use crate::payload_context::*;
use crate::payload_files::*;
use crate::payload_history::*;
use crate::payload_hook::*;
use crate::payload_imported::*;
use crate::payload_job::*;
use crate::payload_plan::*;
use crate::payload_session::*;
use crate::payload_side::*;
use crate::payload_subagent::*;
use crate::payload_todos::*;
use crate::payload_turn::*;
use serde::{Deserialize, Serialize};

/// What happened. An unknown type parses as [`EventBody::Unknown`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum EventBody {
    /// The session was created.
    #[serde(rename = "session.created")]
    SessionCreated(SessionCreated),
    /// Settings changed; absent fields are unchanged.
    #[serde(rename = "session.updated")]
    SessionUpdated(SessionUpdated),
    /// No new model call starts until the session is resumed.
    #[serde(rename = "session.paused")]
    SessionPaused(SessionPaused),
    /// The session may continue.
    #[serde(rename = "session.resumed")]
    SessionResumed(SessionResumed),
    /// The session takes no more input.
    #[serde(rename = "session.closed")]
    SessionClosed(SessionClosed),
    /// An input is durable.
    #[serde(rename = "input.accepted")]
    InputAccepted(InputAccepted),
    /// An input left the queue before it joined the conversation.
    #[serde(rename = "input.cancelled")]
    InputCancelled(InputCancelled),
    /// agentd itself added a note for the model.
    #[serde(rename = "note.injected")]
    NoteInjected(NoteInjected),
    /// A turn began.
    #[serde(rename = "turn.started")]
    TurnStarted(TurnStarted),
    /// One attempt of a model call begins.
    #[serde(rename = "model.started")]
    ModelStarted(ModelStarted),
    /// The model answered.
    #[serde(rename = "model.finished")]
    ModelFinished(ModelFinished),
    /// An attempt failed.
    #[serde(rename = "model.failed")]
    ModelFailed(ModelFailed),
    /// The model requested a tool call.
    #[serde(rename = "tool.proposed")]
    ToolProposed(ToolProposed),
    /// The gate judged a call.
    #[serde(rename = "verdict.given")]
    VerdictGiven(VerdictGiven),
    /// agentd asks a person.
    #[serde(rename = "approval.asked")]
    ApprovalAsked(ApprovalAsked),
    /// No one answered in time, and the question stays open.
    #[serde(rename = "approval.escalated")]
    ApprovalEscalated(ApprovalEscalated),
    /// A person answered, or time ran out.
    #[serde(rename = "approval.decided")]
    ApprovalDecided(ApprovalDecided),
    /// A tool begins; durable before its effect.
    #[serde(rename = "tool.started")]
    ToolStarted(ToolStarted),
    /// A tool call has its only result.
    #[serde(rename = "tool.finished")]
    ToolFinished(ToolFinished),
    /// A hook answered, or failed to.
    #[serde(rename = "hook.finished")]
    HookFinished(HookFinished),
    /// The list of things to do changed.
    #[serde(rename = "todo.updated")]
    TodoUpdated(TodoUpdated),
    /// The permission mode changed inside a turn.
    #[serde(rename = "mode.changed")]
    ModeChanged(ModeChanged),
    /// The intent of a turn's inputs was determined.
    #[serde(rename = "intent.classified")]
    IntentClassified(IntentClassified),
    /// The plan changed.
    #[serde(rename = "plan.updated")]
    PlanUpdated(PlanUpdated),
    /// A command runs in the background.
    #[serde(rename = "job.started")]
    JobStarted(JobStarted),
    /// A background command ended.
    #[serde(rename = "job.finished")]
    JobFinished(JobFinished),
    /// A background command is gone, and its outcome is unknown.
    #[serde(rename = "job.lost")]
    JobLost(JobLost),
    /// A call started a session of its own.
    #[serde(rename = "subagent.started")]
    SubagentStarted(SubagentStarted),
    /// The session of a call has ended.
    #[serde(rename = "subagent.finished")]
    SubagentFinished(SubagentFinished),
    /// A summary replaced old messages.
    #[serde(rename = "context.compacted")]
    ContextCompacted(ContextCompacted),
    /// The model sees long tool results cut; the log keeps them whole.
    #[serde(rename = "context.truncated")]
    ContextTruncated(ContextTruncated),
    /// The model no longer sees old tool results.
    #[serde(rename = "context.pruned")]
    ContextPruned(ContextPruned),
    /// The model no longer sees old messages.
    #[serde(rename = "context.trimmed")]
    ContextTrimmed(ContextTrimmed),
    /// A principal requested a compaction.
    #[serde(rename = "compaction.asked")]
    CompactionAsked(CompactionAsked),
    /// A requested compaction left the conversation as it is.
    #[serde(rename = "context.kept")]
    ContextKept(ContextKept),
    /// A model call outside the turns ended.
    #[serde(rename = "side_call.finished")]
    SideCallFinished(SideCallFinished),
    /// A limit was hit.
    #[serde(rename = "limit.reached")]
    LimitReached(LimitReached),
    /// A person should look at this.
    #[serde(rename = "warning.raised")]
    WarningRaised(WarningRaised),
    /// The turn ended.
    #[serde(rename = "turn.finished")]
    TurnFinished(TurnFinished),
    /// After a restart: the work that was in flight and how it was closed.
    #[serde(rename = "session.recovered")]
    SessionRecovered(SessionRecovered),
    /// Another node runs the session.
    #[serde(rename = "session.moved")]
    SessionMoved(SessionMoved),
    /// The log below was imported: a foreign history, with no authority here.
    #[serde(rename = "session.imported")]
    SessionImported(SessionImported),
    /// A line of an imported log. It is shown to people and to the model, and decides nothing.
    #[serde(rename = "imported.event")]
    ImportedEvent(ImportedEvent),
    /// Files or the conversation are about to be put back; durable before that happens.
    #[serde(rename = "history.started")]
    HistoryStarted(HistoryStarted),
    /// Nothing could be put back; nothing was changed.
    #[serde(rename = "history.failed")]
    HistoryFailed(HistoryFailed),
    /// Files are back as they were before some changes.
    #[serde(rename = "undo.applied")]
    UndoApplied(UndoApplied),
    /// The files of the working directory were recorded.
    #[serde(rename = "workspace.checkpointed")]
    WorkspaceCheckpointed(WorkspaceCheckpointed),
    /// The session works in a new workspace.
    #[serde(rename = "workspace.created")]
    WorkspaceCreated(WorkspaceCreated),
    /// The workspace was made again with the files that the store kept.
    #[serde(rename = "workspace.restored")]
    WorkspaceRestored(WorkspaceRestored),
    /// The setup commands of the workspace have run.
    #[serde(rename = "workspace.prepared")]
    WorkspacePrepared(WorkspacePrepared),
    /// The changes of the session are about to be brought elsewhere.
    #[serde(rename = "transfer.started")]
    TransferStarted(TransferStarted),
    /// The changes of the session were brought elsewhere, or could not be.
    #[serde(rename = "transfer.finished")]
    TransferFinished(TransferFinished),
    /// The conversation is back at an earlier point.
    #[serde(rename = "session.rewound")]
    SessionRewound(SessionRewound),
    /// The log up to here is a copy of another session's.
    #[serde(rename = "session.forked")]
    SessionForked(SessionForked),
    /// An always-rule was added to the fleet-wide stream.
    #[serde(rename = "rule.added")]
    RuleAdded(RuleAdded),
    /// An always-rule was revoked.
    #[serde(rename = "rule.removed")]
    RuleRemoved(RuleRemoved),
    /// A type of a newer version. Readers skip it; an owner faults the session.
    #[serde(other)]
    Unknown,
}

macro_rules! kinds {
    ($($variant:ident => $name:literal),* $(,)?) => {
        /// The names of all types in the contract.
        pub const EVENT_KINDS: &[&str] = &[$($name),*];

        impl EventBody {
            /// The name of the type in the contract.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Unknown => "unknown",
                }
            }
        }
    };
}

kinds! {
    SessionCreated => "session.created",
    SessionUpdated => "session.updated",
    SessionPaused => "session.paused",
    SessionResumed => "session.resumed",
    SessionClosed => "session.closed",
    InputAccepted => "input.accepted",
    InputCancelled => "input.cancelled",
    NoteInjected => "note.injected",
    TurnStarted => "turn.started",
    ModelStarted => "model.started",
    ModelFinished => "model.finished",
    ModelFailed => "model.failed",
    ToolProposed => "tool.proposed",
    VerdictGiven => "verdict.given",
    ApprovalAsked => "approval.asked",
    ApprovalEscalated => "approval.escalated",
    ApprovalDecided => "approval.decided",
    ToolStarted => "tool.started",
    ToolFinished => "tool.finished",
    HookFinished => "hook.finished",
    TodoUpdated => "todo.updated",
    ModeChanged => "mode.changed",
    IntentClassified => "intent.classified",
    PlanUpdated => "plan.updated",
    JobStarted => "job.started",
    JobFinished => "job.finished",
    JobLost => "job.lost",
    SubagentStarted => "subagent.started",
    SubagentFinished => "subagent.finished",
    ContextCompacted => "context.compacted",
    ContextTruncated => "context.truncated",
    ContextPruned => "context.pruned",
    ContextTrimmed => "context.trimmed",
    CompactionAsked => "compaction.asked",
    ContextKept => "context.kept",
    SideCallFinished => "side_call.finished",
    LimitReached => "limit.reached",
    WarningRaised => "warning.raised",
    TurnFinished => "turn.finished",
    SessionRecovered => "session.recovered",
    SessionMoved => "session.moved",
    SessionImported => "session.imported",
    ImportedEvent => "imported.event",
    HistoryStarted => "history.started",
    HistoryFailed => "history.failed",
    UndoApplied => "undo.applied",
    WorkspaceCheckpointed => "workspace.checkpointed",
    WorkspaceCreated => "workspace.created",
    WorkspaceRestored => "workspace.restored",
    WorkspacePrepared => "workspace.prepared",
    TransferStarted => "transfer.started",
    TransferFinished => "transfer.finished",
    SessionRewound => "session.rewound",
    SessionForked => "session.forked",
    RuleAdded => "rule.added",
    RuleRemoved => "rule.removed",
}

macro_rules! from_payload {
    ($($name:ident),* $(,)?) => {
        $(impl From<$name> for EventBody { fn from(payload: $name) -> Self { Self::$name(payload) } })*
    };
}

from_payload!(
    SessionCreated,
    SessionUpdated,
    SessionPaused,
    SessionResumed,
    SessionClosed,
    InputAccepted,
    InputCancelled,
    NoteInjected,
    TurnStarted,
    ModelStarted,
    ModelFinished,
    ModelFailed,
    ToolProposed,
    VerdictGiven,
    ApprovalAsked,
    ApprovalEscalated,
    ApprovalDecided,
    ToolStarted,
    ToolFinished,
    HookFinished,
    TodoUpdated,
    ModeChanged,
    IntentClassified,
    PlanUpdated,
    JobStarted,
    JobFinished,
    JobLost,
    SubagentStarted,
    SubagentFinished,
    ContextCompacted,
    ContextTruncated,
    ContextPruned,
    ContextTrimmed,
    CompactionAsked,
    ContextKept,
    SideCallFinished,
    LimitReached,
    WarningRaised,
    TurnFinished,
    SessionRecovered,
    SessionMoved,
    SessionImported,
    ImportedEvent,
    HistoryStarted,
    HistoryFailed,
    UndoApplied,
    WorkspaceCheckpointed,
    WorkspaceCreated,
    WorkspaceRestored,
    WorkspacePrepared,
    TransferStarted,
    TransferFinished,
    SessionRewound,
    SessionForked,
    RuleAdded,
    RuleRemoved
);
