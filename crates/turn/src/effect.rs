//! The closed list of effects: what the core wants done.

use crate::durable::OpenHistory;
use crate::input::TimerKey;
use crate::lifecycle::event::LifecycleEvent;
use crate::tree::delegate::Ended;
use agentd_protocol::{
    ApprovalId, CallId, CompactionCause, EffectClass, Event, Fault, InputId, Principal, RequestPart,
    SandboxLevel, Seq, SessionId, SidePurpose, ThinkingLevel, ToolCallId,
};
use serde_json::Value;

/// The result of one decision. The events are already applied to the agent; the shell appends them in one batch,
/// replies once they are durable, and executes the effects in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// New facts, in order, with their seqs.
    pub events: Vec<Event>,
    /// The work. [`Effect::RunTool`] and [`Effect::AskHooks`] only after `events` are durable (I4); the rest immediately.
    pub effects: Vec<Effect>,
    /// The answer to a command: sent once `events` are durable (I1), immediately if there are none.
    pub reply: Option<Result<Reply, Fault>>,
}

/// Ways to make a conversation shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shrink {
    /// Its beginning becomes a summary.
    Compact,
    /// Its long tool results are cut until it fits its target tokens.
    TruncateResults,
    /// Each tool result is cut to the target tokens.
    CapResults,
    /// Its old tool results are cleared.
    Prune,
    /// The messages after the task are dropped.
    Trim,
}

/// The model that writes a summary, and its request options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summariser {
    /// The configured model's name.
    pub model: String,
    /// The credential to prefer.
    pub credential: Option<String>,
    /// Request parts to leave out because the server has rejected them.
    pub without: Vec<RequestPart>,
    /// How hard it thinks in this conversation; a provider's cache may depend on it.
    pub thinking: Option<ThinkingLevel>,
    /// The size of its window in tokens, if known.
    pub window: Option<u64>,
    /// The overall time limit; after it a summary is made without a model.
    pub within_ms: u64,
}

/// A question to a model outside of the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideCall {
    /// The id of the call.
    pub call: CallId,
    /// The purpose of the question.
    pub purpose: SidePurpose,
    /// The text to judge, if it is not the conversation.
    pub words: String,
    /// The configured name of the model.
    pub model: String,
    /// The credential to prefer.
    pub credential: Option<String>,
    /// Request parts to leave out because the server has rejected them.
    pub without: Vec<RequestPart>,
    /// The most tokens that the answer may have.
    pub max_output: u32,
    /// The overall time limit.
    pub within_ms: u64,
}

/// An action for the shell to execute.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start an attempt: encode the transcript, spawn a `ModelCall`.
    StartModel {
        /// The call.
        call: CallId,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The configured model's name.
        model: String,
        /// Without tools: a summary at the step limit.
        tools_off: bool,
        /// The credential to prefer.
        credential: Option<String>,
        /// The thinking level; absent: as configured for the model.
        thinking: Option<ThinkingLevel>,
        /// Request parts to leave out because the server has rejected them.
        without: Vec<RequestPart>,
        /// The window reported by the server, in tokens; absent: as configured for the model.
        window: Option<u64>,
        /// A person wants it tried now, regardless of known provider problems.
        insists: bool,
        /// The provider should keep the prompt cached for an hour.
        cache_hour: bool,
    },
    /// Ask a model outside of the turn; answered by `Input::SideEnded`.
    StartSide(SideCall),
    /// Abandon a side call whose answer is no longer needed.
    DropSide {
        /// The call.
        call: CallId,
    },
    /// Have the provider count the next request; answered by `Input::Counted`.
    CountTokens {
        /// Echoed in the answer.
        call: CallId,
        /// The configured name of the next call's model.
        model: String,
        /// The credential to use.
        credential: Option<String>,
        /// Request parts to leave out because the server has rejected them.
        without: Vec<RequestPart>,
        /// The time limit.
        within_ms: u64,
    },
    /// Abandon a count that is no longer needed.
    DropCount {
        /// The count's call.
        call: CallId,
    },
    /// Make the conversation shorter. Answered by `Input::Shrunk`; a hook's veto is reported there, too.
    Shrink {
        /// The model call that needs it; before a call, and between turns, an id of its own.
        call: CallId,
        /// The attempt whose failure caused it; 0: none.
        attempt: u32,
        /// The method.
        how: Shrink,
        /// The target size in tokens.
        target_tokens: u64,
        /// The cause.
        cause: CompactionCause,
        /// The model that writes the summary, if any.
        summariser: Option<Summariser>,
    },
    /// Abandon shortening the conversation.
    StopShrinking {
        /// The model call that needed it.
        call: CallId,
        /// The attempt whose failure caused it.
        attempt: u32,
    },
    /// Kill the attempt's worker.
    KillModel {
        /// The call.
        call: CallId,
        /// The attempt.
        attempt: u32,
    },
    /// Prepare a call and have the gate judge it; answered by `Input::Judged`.
    Judge {
        /// The call.
        tool_call: ToolCallId,
        /// The tool's name as the model gave it.
        name: String,
        /// The arguments.
        input: Value,
        /// Rules granted for this session.
        grants: Vec<String>,
    },
    /// Run a call, once this step's events are durable; answered by `Input::ToolEnded`.
    RunTool {
        /// The call.
        tool_call: ToolCallId,
        /// The tool's name.
        name: String,
        /// The arguments.
        input: Value,
        /// The class of its side effects.
        effect: EffectClass,
        /// How it is confined.
        sandbox: SandboxLevel,
    },
    /// Kill a running call's worker (its commands get TERM, then KILL after 500 ms).
    KillTool {
        /// The call.
        tool_call: ToolCallId,
    },
    /// Restore files and the conversation, once this step's events are durable; answered by `Input::Reworked`.
    Rework {
        /// The work: what to restore.
        work: Box<OpenHistory>,
    },
    /// Create the session for a delegated call, unless it already exists; once this step's events are durable. Answered
    /// by `Command::ChildEnded`.
    StartChild {
        /// The call.
        tool_call: ToolCallId,
        /// The session.
        child: SessionId,
        /// The tool's name.
        name: String,
        /// The arguments.
        input: Value,
    },
    /// Close a sub-agent that is no longer needed, once this step's events are durable.
    StopChild {
        /// The sub-agent.
        child: SessionId,
        /// The reason.
        reason: String,
    },
    /// Make a sub-agent check its parent's state, once this step's events are durable.
    Lead {
        /// The sub-agent.
        child: SessionId,
    },
    /// Report this sub-agent's end to its parent, once this step's events are durable; answered by `Input::Told`.
    TellParent {
        /// The parent.
        parent: SessionId,
        /// The report.
        ended: Box<Ended>,
    },
    /// Tell viewers of the root session which approvals are open here, once this step's events are durable.
    TellRoot,
    /// Look up what the tree of agents has spent, once this step's events are durable; answered by `Input::TreeSpent`.
    AskTree {
        /// Echoed in the answer.
        number: u64,
        /// The root of the tree.
        root: SessionId,
        /// The session that waits for this one.
        parent: Option<SessionId>,
    },
    /// Kill all background jobs.
    KillJobs,
    /// Set or replace a timer.
    SetTimer {
        /// The timer.
        key: TimerKey,
        /// Echoed when it fires.
        generation: u64,
        /// Milliseconds from now.
        after_ms: u64,
    },
    /// Drop a timer.
    ClearTimer {
        /// The timer.
        key: TimerKey,
    },
    /// Count the attached viewers that may decide; answered by `Input::Deciders`.
    CountDeciders {
        /// The approval.
        approval: ApprovalId,
    },
    /// Run the lifecycle hooks, once this step's events are durable; answered by `Input::Heard`.
    AskHooks {
        /// Echoed in the answer.
        number: u64,
        /// The lifecycle event.
        topic: LifecycleEvent,
    },
    /// Abandon hooks whose answer is no longer needed.
    DropHooks {
        /// The number of the request.
        number: u64,
    },
    /// Add an always-rule to the fleet-wide stream.
    AddRule {
        /// The rule: `allow Bash(cargo test)`.
        rule: String,
        /// The approval that it comes from.
        approval: ApprovalId,
        /// Who decided.
        by: Principal,
    },
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The session exists.
    Created {
        /// The first input.
        input: Option<InputId>,
        /// The log's head.
        seq: Seq,
    },
    /// The input is durable.
    Sent {
        /// Its id.
        input: InputId,
        /// Its position in the log.
        seq: Seq,
    },
    /// Done; the log's head.
    Done {
        /// The log's head.
        seq: Seq,
    },
    /// Running work was stopped, but the store has no space to record it.
    Ended {
        /// The last durable seq.
        seq: Seq,
    },
}
