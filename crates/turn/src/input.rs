//! The closed list of inputs: everything that can happen to an agent.

use crate::attempts::left_out::Items;
use crate::calls::jobs::JobEnd;
use crate::calls::loop_requests::LoopRequest;
use crate::context::Sizes;
use crate::durable::shown_settings::ShownSettings;
use crate::history::Rework;
use crate::questions::{Answer, QuestionId};
use crate::tree::delegate::Ended;
use agentd_protocol::{
    About, ApprovalId, Basis, Binding, Block, Budget, CallId, ContextCompacted, ContextPruned,
    ContextTrimmed, ContextTruncated, Decision, Delivery, EffectClass, HookFinished, InputId, Labels,
    PermissionMode, Price, Principal, SandboxLevel, Scope, SessionCreated, SessionId, SessionMoved, Stamp,
    ThinkingLevel, ToolCallId, ToolOutcome, TransferFinished, TransferStarted, TurnError, TurnId, Verdict,
};

pub use crate::attempts::model_outcome::{ModelAnswer, ModelFailure, SideEnded};

/// The surroundings that the pure core may use while it decides: time, entropy, models, the transcript's size.
pub struct Scene<'a> {
    /// The time and the entropy of this decision.
    pub stamp: Stamp,
    /// The model behind a configured name, or why it cannot be used (a missing key).
    pub models: &'a dyn Fn(&str) -> Result<ModelFacts, TurnError>,
    /// The estimated tokens of the transcript so far.
    pub input_tokens_estimate: u64,
    /// Other measures of its size.
    pub sizes: Sizes,
    /// A hash of everything that is sent before the conversation now, and of how its messages are encoded: the
    /// provider's prompt cache holds as long as it stays the same.
    pub prefix: u64,
    /// The items of the next request that its provider may refuse one by one.
    pub items: &'a dyn Fn() -> Items,
}

impl std::fmt::Debug for Scene<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene")
            .field("stamp", &self.stamp)
            .finish_non_exhaustive()
    }
}

/// The properties of a model that `model.started` records and the core needs.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFacts {
    /// The provider's configured name.
    pub provider: String,
    /// The provider's model id.
    pub model: String,
    /// The names of its credentials; empty if the provider needs none.
    pub credentials: Vec<String>,
    /// Configured names of models to try when this one has no capacity.
    pub fallbacks: Vec<String>,
    /// The thinking level unless the session specifies another.
    pub thinking: Option<ThinkingLevel>,
    /// The size of its window in tokens.
    pub window: u64,
    /// The most tokens that one answer may have.
    pub max_output: u64,
    /// The shortest prompt that its provider caches, in tokens; none: no caching is known.
    pub min_cache_tokens: Option<u64>,
    /// Its prices, or their usual ratios, if its provider keeps a prompt for an hour on request.
    pub cache_hour: Option<Price>,
    /// Its server counts a request's tokens on demand.
    pub counts: bool,
    /// It takes images.
    pub images: bool,
}

/// An event from outside the core.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A command of a principal; the step has a reply.
    Command {
        /// The command.
        command: Command,
        /// The principal.
        by: Principal,
    },
    /// Text of a streaming attempt: kept as the partial answer, watched by the stutter guard.
    ModelText {
        /// The call.
        call: CallId,
        /// The attempt; text of a stale one is ignored.
        attempt: u32,
        /// The next piece of text.
        text: String,
    },
    /// An attempt answered.
    ModelAnswered {
        /// The call.
        call: CallId,
        /// The attempt; the answer of a stale one is ignored.
        attempt: u32,
        /// The answer.
        answer: ModelAnswer,
    },
    /// An attempt failed: an error, a panic (class internal), or a kill that the core did not order.
    ModelFailed {
        /// The call.
        call: CallId,
        /// The attempt; the failure of a stale one is ignored.
        attempt: u32,
        /// What happened.
        failure: ModelFailure,
    },
    /// The answer to a question ([`crate::Effect::Ask`]).
    Answered {
        /// The question; the answer to one that is not pending any more is ignored.
        id: QuestionId,
        /// The answer.
        answer: Answer,
    },
    /// A call's hooks finished; those that run before the call are reported before its judgement.
    Hooked {
        /// The call.
        tool_call: ToolCallId,
        /// The hooks' results.
        records: Vec<HookFinished>,
    },
    /// A tool call ended, with its result or a substitute after a panic or a kill.
    ToolEnded {
        /// The call.
        tool_call: ToolCallId,
        /// Its one result.
        outcome: ToolOutcome,
    },
    /// A background job has started.
    JobStarted {
        /// Its number.
        job: u32,
        /// The command line.
        command: String,
    },
    /// A background job has ended.
    JobEnded {
        /// Its number.
        job: u32,
        /// How it ended.
        end: JobEnd,
    },
    /// A warning for people about something outside of the turn.
    Warned {
        /// A stable code.
        code: &'static str,
        /// The message.
        message: String,
    },
    /// A timer fired.
    Timer {
        /// The timer.
        key: TimerKey,
        /// Its generation; an older one is ignored.
        generation: u64,
    },
    /// The log was folded into a new incarnation: close what is dangling, continue what is open.
    Recover,
    /// The daemon is draining: start nothing new; running work may finish.
    Drain,
}

/// A step of bringing changes of files elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub enum Transfer {
    /// Before it happens.
    Started(TransferStarted),
    /// Its outcome.
    Finished(TransferFinished),
}

/// A command of a principal.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Create the session, with an optional first input.
    Create {
        /// The first event.
        created: Box<SessionCreated>,
        /// The first input.
        first: Option<NewInput>,
    },
    /// Add an input.
    Send(NewInput),
    /// Withdraw an input before it joins.
    CancelInput(InputId),
    /// End the running turn with reason `cancelled`.
    CancelTurn {
        /// Refused with `conflict` when another turn runs.
        expect: Option<TurnId>,
        /// The reason.
        reason: Option<String>,
        /// Also end the background jobs; then no turn needs to be running.
        jobs: bool,
    },
    /// Answer an approval.
    Decide {
        /// The approval.
        approval: ApprovalId,
        /// Allow, deny or answer.
        decision: Decision,
        /// The scope of an allow.
        scope: Scope,
        /// The answer as text, or the id of a choice.
        answer: Option<String>,
        /// A message for the model.
        message: Option<String>,
        /// What the answer rests on; a denial needs nothing.
        basis: Option<Basis>,
    },
    /// Start no model calls until resumed.
    Pause {
        /// The reason.
        reason: String,
    },
    /// Continue; a parked model call is tried again now.
    Resume {
        /// The reason.
        reason: String,
        /// The session works in another directory from now on. Refused with `conflict` while a call runs.
        moved: Option<Box<SessionMoved>>,
    },
    /// Accept no more input. Refused with `conflict` while a turn runs, unless forced (the turn is cancelled).
    Close {
        /// The reason.
        reason: String,
        /// Close even while a turn runs.
        force: bool,
    },
    /// Restore files, the conversation, or both. Refused with `conflict` while a turn runs.
    Rework(Box<Rework>),
    /// Compact the conversation: now, or before the next model call of the running turn.
    Compact,
    /// Have a model summarise the session so far.
    Summarize,
    /// Record that changes of files are brought elsewhere, also of a closed session (only from agentd itself).
    Transfer(Transfer),
    /// A sub-agent ended (only from agentd itself). Refused with `conflict` if nothing waits for it, so each counts once.
    ChildEnded {
        /// The sub-agent.
        child: SessionId,
        /// Its report.
        ended: Box<Ended>,
    },
    /// Makes a sub-agent report its end to its parent, again if it already has (only from agentd itself).
    Tell,
    /// The state above a sub-agent has changed: the sub-agent is to check it (only from agentd itself).
    Follow,
    /// Change settings.
    Update {
        /// The settings that the session must still have.
        expect: Option<Box<ShownSettings>>,
        /// New title.
        title: Option<String>,
        /// New model.
        model: Option<String>,
        /// New mode.
        mode: Option<PermissionMode>,
        /// New labels.
        labels: Option<Labels>,
        /// New budget.
        budget: Option<Budget>,
    },
}

/// An input that a principal sends.
#[derive(Debug, Clone, PartialEq)]
pub struct NewInput {
    /// The content.
    pub content: Vec<Block>,
    /// How it joins; default: start a turn, or steer while one runs.
    pub delivery: Option<Delivery>,
    /// The idempotency key.
    pub key: Option<String>,
    /// The model for the turn it starts.
    pub model: Option<String>,
}

/// The result of trying to make a conversation shorter.
#[derive(Debug, Clone, PartialEq)]
pub enum Shrunk {
    /// A summary replaced its beginning.
    Compacted(ContextCompacted),
    /// Its long tool results were cut.
    Truncated(ContextTruncated),
    /// Its old tool results were cleared.
    Pruned(ContextPruned),
    /// Its old messages were dropped.
    Trimmed(ContextTrimmed),
    /// A hook vetoed it, with the reason.
    Vetoed(String),
    /// Nothing would be gained.
    Nothing,
}

/// The outcome of judging a proposed call.
#[derive(Debug, Clone, PartialEq)]
pub enum Judged {
    /// The call is well-formed; the gate gave a verdict.
    Verdict {
        /// The verdict.
        verdict: Verdict,
        /// How the call would run.
        plan: CallPlan,
    },
    /// Unknown tool or bad arguments: a result for the model, no verdict.
    Refused(ToolOutcome),
}

/// How a well-formed call would run, and how it is shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlan {
    /// One line for people.
    pub title: String,
    /// Exactly what will happen: the command, the diff.
    pub detail: String,
    /// The class of its side effects.
    pub effect: EffectClass,
    /// Whether it may be run again after a crash.
    pub idempotent: bool,
    /// How it is confined.
    pub sandbox: SandboxLevel,
    /// The scopes that an allow may have.
    pub scopes: Vec<Scope>,
    /// The rule that scope `session` or `always` would add.
    pub grant: Option<String>,
    /// What an approval of this call is bound to.
    pub binding: Option<Binding>,
    /// Further information for the person.
    pub about: Box<About>,
    /// Set if the loop itself answers the call; no tool runs.
    pub loop_request: Option<LoopRequest>,
}

/// The purpose of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimerKey {
    /// The next attempt of the model call.
    Backoff,
    /// The earliest deadline of a pending question.
    Questions,
    /// An approval expires.
    Expiry(ApprovalId),
    /// No client that may decide has attached.
    Unattended(ApprovalId),
}
