//! What the core wants done: the closed list of effects.

use crate::delegate::Ended;
use crate::durable::OpenHistory;
use crate::input::TimerKey;
use crate::topic::Topic;
use agentd_protocol::{
    ApprovalId, CallId, CompactionCause, EffectClass, Event, Fault, InputId, Principal, RequestPart,
    SandboxLevel, Seq, SessionId, SidePurpose, ThinkingLevel, ToolCallId,
};
use serde_json::Value;

/// The outcome of one decision. The events are already applied to the agent; the shell appends them in one batch,
/// replies when they are durable, and carries the effects out in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// New facts, in order, with their seqs.
    pub events: Vec<Event>,
    /// What to do. [`Effect::RunTool`] and [`Effect::AskHooks`] only after `events` are durable (I4); everything else at once.
    pub effects: Vec<Effect>,
    /// The answer to a command: sent after `events` are durable (I1), at once when there are none.
    pub reply: Option<Result<Reply, Fault>>,
}

/// How a conversation is made shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shrink {
    /// Its beginning becomes a summary.
    Compact,
    /// Its long tool results are cut, so that it has the tokens that it may have.
    TruncateResults,
    /// Each tool result is cut to the tokens that it may have.
    CapResults,
    /// Its old tool results are cleared.
    Prune,
    /// The messages after the task are left out.
    Trim,
}

/// Which model writes a summary, and how it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summariser {
    /// The configured model's name.
    pub model: String,
    /// The credential to prefer.
    pub credential: Option<String>,
    /// What is left out of the request because the server was found to refuse it.
    pub without: Vec<RequestPart>,
    /// Tokens of its window, as far as they are known.
    pub window: Option<u64>,
    /// All of it may take so long; afterwards a summary is made without a model.
    pub within_ms: u64,
}

/// A question to a model beside the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideCall {
    /// The call.
    pub call: CallId,
    /// For what.
    pub purpose: SidePurpose,
    /// What it is about, where that is not the conversation.
    pub words: String,
    /// The configured name of the model.
    pub model: String,
    /// The credential to prefer.
    pub credential: Option<String>,
    /// What is left out of the request because the server was found to refuse it.
    pub without: Vec<RequestPart>,
    /// Tokens that the answer may have.
    pub max_output: u32,
    /// All of it may take so long.
    pub within_ms: u64,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start an attempt: encode the transcript, spawn a `ModelCall`.
    StartModel {
        /// The call.
        call: CallId,
        /// From 1.
        attempt: u32,
        /// The configured model's name.
        model: String,
        /// Without tools: a summary at the limit.
        tools_off: bool,
        /// The credential to prefer.
        credential: Option<String>,
        /// How hard it is asked to think; absent: as the model is configured.
        thinking: Option<ThinkingLevel>,
        /// What is left out of the request because the server was found to refuse it.
        without: Vec<RequestPart>,
        /// The window that its server told, in tokens; absent: as the model is configured.
        window: Option<u64>,
        /// A person wants it tried now, whatever is known of the provider's troubles.
        insists: bool,
    },
    /// Ask a model beside the turn; answered by `Input::SideEnded`.
    StartSide(SideCall),
    /// Nobody waits for that answer any more.
    DropSide {
        /// The call.
        call: CallId,
    },
    /// Have the provider count the next request; answered by `Input::Counted`.
    CountTokens {
        /// Handed back with the answer.
        call: CallId,
        /// The configured name of the model that is called next.
        model: String,
        /// The credential to use.
        credential: Option<String>,
        /// What is left out of the request because the server was found to refuse it.
        without: Vec<RequestPart>,
        /// It may take so long.
        within_ms: u64,
    },
    /// Nobody waits for the count any more.
    DropCount {
        /// Which.
        call: CallId,
    },
    /// Make the conversation shorter. Answered by `Input::Shrunk`; a veto of a hook belongs here.
    Shrink {
        /// For which model call; before a call, and between turns, an id of its own.
        call: CallId,
        /// The attempt that failed for it; 0: none did.
        attempt: u32,
        /// How.
        how: Shrink,
        /// The tokens that it may have.
        target_tokens: u64,
        /// Why.
        cause: CompactionCause,
        /// Who writes the summary; none: nobody.
        summariser: Option<Summariser>,
    },
    /// Nobody waits for a shorter conversation any more.
    StopShrinking {
        /// For which model call.
        call: CallId,
        /// The attempt that failed for it.
        attempt: u32,
    },
    /// Kill the attempt's kid.
    KillModel {
        /// The call.
        call: CallId,
        /// The attempt.
        attempt: u32,
    },
    /// Prepare a call and have it judged; answered by `Input::Judged`.
    Judge {
        /// The call.
        tool_call: ToolCallId,
        /// The tool's name as the model said it.
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
        /// What it does to the world.
        effect: EffectClass,
        /// How it is confined.
        sandbox: SandboxLevel,
    },
    /// Kill a running call's kid (its commands get TERM, 500 ms, KILL).
    KillTool {
        /// The call.
        tool_call: ToolCallId,
    },
    /// Put files and the conversation back, once this step's events are durable; answered by `Input::Reworked`.
    Rework {
        /// What.
        work: Box<OpenHistory>,
    },
    /// Create the session that a call became, unless it is there already; once this step's events are durable. Answered by
    /// `Command::ChildEnded`.
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
    /// Close a sub-agent that nobody waits for, once this step's events are durable.
    StopChild {
        /// Which.
        child: SessionId,
        /// Why.
        reason: String,
    },
    /// Have a sub-agent look how its parent is now, once this step's events are durable.
    Lead {
        /// Which.
        child: SessionId,
    },
    /// Tell the parent how this sub-agent ended, once this step's events are durable; answered by `Input::Told`.
    TellParent {
        /// Whom.
        parent: SessionId,
        /// How.
        ended: Box<Ended>,
    },
    /// Tell the viewers of the root which questions are open here, once this step's events are durable.
    TellRoot,
    /// Look up what the tree of agents spent, once this step's events are durable; answered by `Input::TreeSpent`.
    AskTree {
        /// Handed back with the answer.
        number: u64,
        /// The top of the tree.
        root: SessionId,
        /// Who waits for this session.
        parent: Option<SessionId>,
    },
    /// Kill all background jobs.
    KillJobs,
    /// Set or replace a timer.
    SetTimer {
        /// Which.
        key: TimerKey,
        /// Handed back when it fires.
        generation: u64,
        /// Milliseconds from now.
        after_ms: u64,
    },
    /// Drop a timer.
    ClearTimer {
        /// Which.
        key: TimerKey,
    },
    /// Count the attached viewers that may decide; answered by `Input::Deciders`.
    CountDeciders {
        /// For which approval.
        approval: ApprovalId,
    },
    /// Tell the hooks, once this step's events are durable; answered by `Input::Heard`.
    AskHooks {
        /// Handed back with the answer.
        number: u64,
        /// Of what.
        topic: Topic,
    },
    /// Nobody waits for these hooks any more.
    DropHooks {
        /// Which asking.
        number: u64,
    },
    /// Add an always-rule to the fleet-wide stream.
    AddRule {
        /// The rule: `allow Bash(cargo test)`.
        rule: String,
        /// Where it comes from.
        approval: ApprovalId,
        /// Who decided.
        by: Principal,
    },
}

/// What a command is answered with.
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
        /// Where in the log.
        seq: Seq,
    },
    /// Done; the log's head.
    Done {
        /// The log's head.
        seq: Seq,
    },
    /// What ran was ended, and the store has no space to say so.
    Ended {
        /// The end of what is durable.
        seq: Seq,
    },
}
