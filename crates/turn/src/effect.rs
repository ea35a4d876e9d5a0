//! The closed list of effects: what the core wants done.

use crate::input::TimerKey;
use crate::questions::{Question, QuestionId};
use agentd_protocol::{
    ApprovalId, CallId, EffectClass, Event, Fault, Grant, InputId, Principal, RequestItem, RequestPart,
    SandboxLevel, Seq, SessionId, SidePurpose, ThinkingLevel, ToolCallId,
};
use serde_json::Value;

/// The result of one decision. The events are already applied to the agent; the shell appends them in one batch,
/// replies once they are durable, and executes the effects in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// New facts, in order, with their seqs.
    pub events: Vec<Event>,
    /// The work. [`Effect::RunTool`] and some questions only after `events` are durable (I4); the rest immediately.
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
        /// Items to leave out because the server has refused them.
        left_out: Vec<RequestItem>,
        /// The window reported by the server, in tokens; absent: as configured for the model.
        window: Option<u64>,
        /// A person wants it tried now, regardless of known provider problems.
        insists: bool,
        /// The provider should keep the prompt cached for an hour.
        cache_hour: bool,
    },
    /// Ask a question; answered by [`crate::Input::Answered`].
    Ask {
        /// Echoed in the answer.
        id: QuestionId,
        /// The question.
        question: Question,
    },
    /// Abandon a question whose answer is no longer needed.
    Withdraw {
        /// The question.
        id: QuestionId,
    },
    /// Kill the attempt's worker.
    KillModel {
        /// The call.
        call: CallId,
        /// The attempt.
        attempt: u32,
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
    /// Tell viewers of the root session which approvals are open here, once this step's events are durable.
    TellRoot,
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
    /// Add an always-rule to the fleet-wide stream.
    AddRule {
        /// The rule, `allow Bash(cargo test)`, and its reach.
        grant: Grant,
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
