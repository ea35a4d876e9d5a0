//! Every type of event, by the contract's name.

use crate::payload_context::*;
use crate::payload_history::*;
use crate::payload_hook::*;
use crate::payload_imported::*;
use crate::payload_job::*;
use crate::payload_plan::*;
use crate::payload_session::*;
use crate::payload_side::*;
use crate::payload_subagent::*;
use crate::payload_talk::*;
use crate::payload_turn::*;
use serde::{Deserialize, Serialize};

/// What happened. An unknown type parses as [`EventBody::Unknown`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum EventBody {
    /// The session exists.
    #[serde(rename = "session.created")]
    SessionCreated(SessionCreated),
    /// Settings changed; absent fields did not.
    #[serde(rename = "session.updated")]
    SessionUpdated(SessionUpdated),
    /// No new model call starts until it is resumed.
    #[serde(rename = "session.paused")]
    SessionPaused(SessionPaused),
    /// It may go on.
    #[serde(rename = "session.resumed")]
    SessionResumed(SessionResumed),
    /// It takes no more input.
    #[serde(rename = "session.closed")]
    SessionClosed(SessionClosed),
    /// An input is durable.
    #[serde(rename = "input.accepted")]
    InputAccepted(InputAccepted),
    /// An input left the queue before it joined.
    #[serde(rename = "input.cancelled")]
    InputCancelled(InputCancelled),
    /// What agentd itself added for the model.
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
    /// The model asked for a tool.
    #[serde(rename = "tool.proposed")]
    ToolProposed(ToolProposed),
    /// The gate judged a call.
    #[serde(rename = "verdict.given")]
    VerdictGiven(VerdictGiven),
    /// A person is asked.
    #[serde(rename = "approval.asked")]
    ApprovalAsked(ApprovalAsked),
    /// Nobody answered in time, and the question stays open.
    #[serde(rename = "approval.escalated")]
    ApprovalEscalated(ApprovalEscalated),
    /// A person, or time, answered.
    #[serde(rename = "approval.decided")]
    ApprovalDecided(ApprovalDecided),
    /// A tool begins; durable before its effect.
    #[serde(rename = "tool.started")]
    ToolStarted(ToolStarted),
    /// A tool call has its one result.
    #[serde(rename = "tool.finished")]
    ToolFinished(ToolFinished),
    /// A hook said something of a tool call, or failed to.
    #[serde(rename = "hook.finished")]
    HookFinished(HookFinished),
    /// The list of things to do changed.
    #[serde(rename = "todo.updated")]
    TodoUpdated(TodoUpdated),
    /// The permission mode changed inside a turn.
    #[serde(rename = "mode.changed")]
    ModeChanged(ModeChanged),
    /// What the inputs of a turn want.
    #[serde(rename = "intent.classified")]
    IntentClassified(IntentClassified),
    /// The plan of the work changed.
    #[serde(rename = "plan.updated")]
    PlanUpdated(PlanUpdated),
    /// A command runs in the background.
    #[serde(rename = "job.started")]
    JobStarted(JobStarted),
    /// A background command ended.
    #[serde(rename = "job.finished")]
    JobFinished(JobFinished),
    /// A background command is gone, and nobody saw its end.
    #[serde(rename = "job.lost")]
    JobLost(JobLost),
    /// A call became a session of its own.
    #[serde(rename = "subagent.started")]
    SubagentStarted(SubagentStarted),
    /// That session has ended.
    #[serde(rename = "subagent.finished")]
    SubagentFinished(SubagentFinished),
    /// Old messages were replaced by a summary.
    #[serde(rename = "context.compacted")]
    ContextCompacted(ContextCompacted),
    /// Long tool results were cut in what the model sees; the log keeps them.
    #[serde(rename = "context.truncated")]
    ContextTruncated(ContextTruncated),
    /// Old tool results are not shown to the model any more.
    #[serde(rename = "context.pruned")]
    ContextPruned(ContextPruned),
    /// Old messages are not shown to the model any more.
    #[serde(rename = "context.trimmed")]
    ContextTrimmed(ContextTrimmed),
    /// A principal wants the conversation compacted.
    #[serde(rename = "compaction.asked")]
    CompactionAsked(CompactionAsked),
    /// The conversation that was to be compacted stays as it is.
    #[serde(rename = "context.kept")]
    ContextKept(ContextKept),
    /// A model was asked beside the turns.
    #[serde(rename = "side_call.finished")]
    SideCallFinished(SideCallFinished),
    /// A limit was hit.
    #[serde(rename = "limit.reached")]
    LimitReached(LimitReached),
    /// Something worth a person's attention.
    #[serde(rename = "warning.raised")]
    WarningRaised(WarningRaised),
    /// The turn ended.
    #[serde(rename = "turn.finished")]
    TurnFinished(TurnFinished),
    /// After a restart: what was in flight and how it was closed.
    #[serde(rename = "session.recovered")]
    SessionRecovered(SessionRecovered),
    /// Another node runs the session.
    #[serde(rename = "session.moved")]
    SessionMoved(SessionMoved),
    /// The log below was imported: somebody else's history, with no authority here.
    #[serde(rename = "session.imported")]
    SessionImported(SessionImported),
    /// A line of an imported log. It is shown and retold to the model, and decides nothing.
    #[serde(rename = "imported.event")]
    ImportedEvent(ImportedEvent),
    /// Files are about to be put back, or the conversation to go back; durable before it.
    #[serde(rename = "history.started")]
    HistoryStarted(HistoryStarted),
    /// It could not be; nothing was changed.
    #[serde(rename = "history.failed")]
    HistoryFailed(HistoryFailed),
    /// Files are as they were before some changes.
    #[serde(rename = "undo.applied")]
    UndoApplied(UndoApplied),
    /// The conversation is as it was at an earlier point.
    #[serde(rename = "session.rewound")]
    SessionRewound(SessionRewound),
    /// The log up to here is a copy of another session's.
    #[serde(rename = "session.forked")]
    SessionForked(SessionForked),
    /// An always-rule of the fleet-wide stream.
    #[serde(rename = "rule.added")]
    RuleAdded(RuleAdded),
    /// An always-rule was taken back.
    #[serde(rename = "rule.removed")]
    RuleRemoved(RuleRemoved),
    /// A type of a newer version. Readers skip it; an owner faults the session.
    #[serde(other)]
    Unknown,
}

macro_rules! kinds {
    ($($variant:ident => $name:literal),* $(,)?) => {
        /// The contract's names of all types.
        pub const EVENT_KINDS: &[&str] = &[$($name),*];

        impl EventBody {
            /// The contract's name of the type.
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
    SessionRewound,
    SessionForked,
    RuleAdded,
    RuleRemoved
);
