//! Everything that can happen to an agent: the closed list of inputs.

use crate::context::Sizes;
use crate::delegate::Ended;
use crate::history::{Rework, Reworked};
use crate::jobs::JobEnd;
use crate::talk::Talk;
use crate::tree::TreeSpent;
use agentd_protocol::{
    About, ApprovalId, Binding, Block, Budget, CallId, ContextCompacted, ContextPruned, ContextTrimmed,
    ContextTruncated, Decision, Delivery, EffectClass, HookFinished, InputId, Labels, PermissionMode,
    Principal, SandboxLevel, Scope, SessionCreated, SessionId, Stamp, ThinkingLevel, ToolCallId, ToolOutcome,
    TurnError, TurnId, Verdict,
};

pub use crate::model_outcome::{ModelAnswer, ModelFailure, SideEnded};

/// What the pure core may know of its surroundings while it decides: time, entropy, models, the transcript's size.
pub struct Scene<'a> {
    /// The moment and the entropy of this decision.
    pub stamp: Stamp,
    /// What a configured model's name stands for, or why it cannot be used (a missing key).
    pub models: &'a dyn Fn(&str) -> Result<ModelFacts, TurnError>,
    /// The estimated tokens of the transcript so far.
    pub input_tokens_estimate: u64,
    /// What else there is to know of its size.
    pub sizes: Sizes,
    /// Stands for everything before the conversation as it would be sent now, and for how its messages are encoded: the
    /// provider's prompt cache holds as long as it stays the same.
    pub prefix: u64,
}

impl std::fmt::Debug for Scene<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene")
            .field("stamp", &self.stamp)
            .finish_non_exhaustive()
    }
}

/// What `model.started` says of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFacts {
    /// The provider's configured name.
    pub provider: String,
    /// The provider's model id.
    pub model: String,
    /// The names of its credentials; empty where the provider needs none.
    pub credentials: Vec<String>,
    /// Configured names of models to try when this one has no capacity.
    pub fallbacks: Vec<String>,
    /// How hard it is asked to think unless the session says otherwise.
    pub thinking: Option<ThinkingLevel>,
    /// Tokens of its window.
    pub window: u64,
    /// Tokens that one answer may have.
    pub max_output: u64,
    /// The shortest prompt that its provider caches, in tokens; none: it does not cache as far as we know.
    pub min_cache_tokens: Option<u64>,
    /// Its server counts the tokens of a request when it is asked to.
    pub counts: bool,
}

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A command of a principal; the step has a reply.
    Command {
        /// What.
        command: Command,
        /// Who.
        by: Principal,
    },
    /// Text of a streaming attempt: kept as the partial answer, watched by the stutter guard.
    ModelText {
        /// The call.
        call: CallId,
        /// The attempt; a stale one is ignored.
        attempt: u32,
        /// The next piece of text.
        text: String,
    },
    /// An attempt answered.
    ModelAnswered {
        /// The call.
        call: CallId,
        /// The attempt; a stale one is ignored.
        attempt: u32,
        /// The answer.
        answer: ModelAnswer,
    },
    /// An attempt failed: an error, a panic (class internal), a kill that we did not order.
    ModelFailed {
        /// The call.
        call: CallId,
        /// The attempt; a stale one is ignored.
        attempt: u32,
        /// What happened.
        failure: ModelFailure,
    },
    /// The gate judged a call, or it could not even be prepared.
    Judged {
        /// The call.
        tool_call: ToolCallId,
        /// The judgement.
        judged: Judged,
    },
    /// Hooks of a call ended; those before it come before its judgement.
    Hooked {
        /// The call.
        tool_call: ToolCallId,
        /// What they said.
        records: Vec<HookFinished>,
    },
    /// The hooks that were asked about something else than a call ended.
    Heard {
        /// Which asking; a stale one is ignored.
        number: u64,
        /// What they said.
        records: Vec<HookFinished>,
    },
    /// A tool call ended: its result, or what stands for it after a panic or a kill.
    ToolEnded {
        /// The call.
        tool_call: ToolCallId,
        /// Its one result.
        outcome: ToolOutcome,
    },
    /// A background job runs.
    JobStarted {
        /// Its number.
        job: u32,
        /// The command line.
        command: String,
    },
    /// A background job does not run any more.
    JobEnded {
        /// Its number.
        job: u32,
        /// How it ended.
        end: JobEnd,
    },
    /// Answer to [`crate::Effect::CountDeciders`].
    Deciders {
        /// The approval.
        approval: ApprovalId,
        /// Attached viewers that may decide.
        count: u32,
    },
    /// Answer to [`crate::Effect::Shrink`].
    Shrunk {
        /// For which model call.
        call: CallId,
        /// The attempt that failed for it.
        attempt: u32,
        /// What came of it.
        shrunk: Shrunk,
    },
    /// Answer to [`crate::Effect::StartSide`]; or what a summary spent for which nobody waits any more.
    SideEnded(SideEnded),
    /// Answer to [`crate::Effect::CountTokens`]: the conversation's estimate is the provider's count by now, or stays.
    Counted {
        /// Which.
        call: CallId,
    },
    /// Something outside of the turn is worth a person's attention.
    Warned {
        /// A stable word.
        code: &'static str,
        /// What.
        message: String,
    },
    /// The parent has the result of this sub-agent or does not want it, or it could not be reached.
    Told {
        /// The parent spoke.
        heard: bool,
    },
    /// Answer to [`crate::Effect::AskTree`].
    TreeSpent {
        /// Which asking; a stale one is ignored.
        number: u64,
        /// What was found; none: it could not be read.
        spent: Option<TreeSpent>,
    },
    /// Work on files and history ended.
    Reworked(Reworked),
    /// A timer fired.
    Timer {
        /// Which.
        key: TimerKey,
        /// Its generation; an older one is ignored.
        generation: u64,
    },
    /// The log was folded into a new incarnation: close what is dangling, go on with what is open.
    Recover,
    /// The daemon drains: start nothing new; what runs may end.
    Drain,
}

/// What a principal orders.
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
    /// Take an input back before it joins.
    CancelInput(InputId),
    /// End the running turn with reason `cancelled`.
    CancelTurn {
        /// Refused with `conflict` when another turn runs.
        expect: Option<TurnId>,
        /// Why.
        reason: Option<String>,
        /// End the background jobs, too; then no turn needs to run.
        jobs: bool,
    },
    /// Answer an approval.
    Decide {
        /// Which.
        approval: ApprovalId,
        /// Allow, deny or answer.
        decision: Decision,
        /// How far an allow reaches.
        scope: Scope,
        /// The answer, or the chosen id.
        answer: Option<String>,
        /// Words for the model.
        message: Option<String>,
    },
    /// Start no model call until resumed.
    Pause {
        /// Why.
        reason: String,
    },
    /// Go on; a model call that waits at rest is tried again now.
    Resume {
        /// Why.
        reason: String,
    },
    /// Take no more input. Refused with `conflict` while a turn runs, unless forced (the turn is cancelled).
    Close {
        /// Why.
        reason: String,
        /// Also while a turn runs.
        force: bool,
    },
    /// Put files back, or the conversation, or both. Refused with `conflict` while a turn runs.
    Rework(Box<Rework>),
    /// Compact the conversation: now, or before the next model call of the running turn.
    Compact,
    /// Have a model write what was done in the session so far.
    Summarize,
    /// A sub-agent ended (only from agentd itself). Refused with `conflict` when it is not waited for, so each is heard once.
    ChildEnded {
        /// Which.
        child: SessionId,
        /// How.
        ended: Box<Ended>,
    },
    /// A sub-agent is to tell its parent how it ended, once more if it has (only from agentd itself).
    Tell,
    /// What is above a sub-agent is another now: it is to look how (only from agentd itself).
    Follow,
    /// Change settings.
    Update {
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
    /// What is said.
    pub content: Vec<Block>,
    /// How it joins; default: start, or steer while a turn runs.
    pub delivery: Option<Delivery>,
    /// The idempotency key.
    pub key: Option<String>,
    /// The model for the turn it starts.
    pub model: Option<String>,
}

/// What a conversation that was too long became, or why it stays.
#[derive(Debug, Clone, PartialEq)]
pub enum Shrunk {
    /// Its beginning became a summary.
    Compacted(ContextCompacted),
    /// Its long tool results were cut.
    Truncated(ContextTruncated),
    /// Its old tool results were cleared.
    Pruned(ContextPruned),
    /// Its old messages were left out.
    Trimmed(ContextTrimmed),
    /// Somebody does not want it, and why.
    Vetoed(String),
    /// There is nothing to gain.
    Nothing,
}

/// What came of judging a proposed call.
#[derive(Debug, Clone, PartialEq)]
pub enum Judged {
    /// The call is well-formed; the gate spoke.
    Verdict {
        /// The verdict.
        verdict: Verdict,
        /// How the call would run.
        plan: CallPlan,
    },
    /// Unknown tool or bad arguments: a result for the model, without a verdict.
    Refused(ToolOutcome),
}

/// How a well-formed call would run, and how it is shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlan {
    /// One line for people.
    pub title: String,
    /// What exactly will happen: the command, the diff.
    pub detail: String,
    /// What it does to the world.
    pub effect: EffectClass,
    /// Whether it may be run again after a crash.
    pub idempotent: bool,
    /// How it is confined.
    pub sandbox: SandboxLevel,
    /// The scopes an allow may have.
    pub scopes: Vec<Scope>,
    /// The rule that session or always would add.
    pub grant: Option<String>,
    /// What an approval of it is given for.
    pub binding: Option<Binding>,
    /// What a person should know besides.
    pub about: Box<About>,
    /// The loop itself answers it; no tool runs.
    pub talk: Option<Talk>,
}

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimerKey {
    /// The next attempt of the model call.
    Backoff,
    /// Judging takes too long: what is unjudged is denied.
    Judging,
    /// An approval expires.
    Expiry(ApprovalId),
    /// Nobody who may decide has come.
    Unattended(ApprovalId),
}
