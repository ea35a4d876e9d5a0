//! State of this incarnation only: what runs, what is being judged, which timers are set. Losing it does no harm.

use crate::attempts::stutter::Stutter;
use crate::checkpoints::Checkpoints;
use crate::context::Preparing;
use crate::context::overflow::{Shrinking, Window};
use crate::input::{CallPlan, ModelAnswer, TimerKey};
use crate::questions::Questions;
use crate::setup::FailedSetup;
use crate::tree::shared_budget::Tree;
use agentd_protocol::{CallId, HookFinished, InputId, ToolCallId, ToolOutcome, TurnId, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The volatile state of an agent.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Volatile {
    /// The attempt whose worker is running.
    pub(crate) live: Option<Live>,
    /// An answer that waits for verdicts on its calls.
    pub(crate) answer: Option<UnrecordedAnswer>,
    /// The questions that wait for an answer.
    pub(crate) questions: Questions,
    /// Hook results for calls that are not in the log yet.
    pub(crate) hooked: BTreeMap<ToolCallId, Vec<HookFinished>>,
    /// The hooks were notified of the session's start.
    pub(crate) greeted: bool,
    /// Inputs that hooks have admitted, with the text that they add.
    pub(crate) screened: BTreeMap<InputId, Option<String>>,
    /// The turn that hooks allow to end.
    pub(crate) may_stop: Option<TurnId>,
    /// How judged calls would run. Boxed, because a map reserves room for eleven values with its first entry.
    pub(crate) plans: BTreeMap<ToolCallId, Box<CallPlan>>,
    /// Calls whose worker is running.
    pub(crate) running: BTreeSet<ToolCallId>,
    /// Background jobs that run.
    pub(crate) jobs: BTreeSet<u32>,
    /// Timers that are set, with their generation.
    pub(crate) timers: BTreeMap<TimerKey, u64>,
    /// The generation of the most recent timer.
    pub(crate) generation: u64,
    /// The back-off timer has fired.
    pub(crate) backoff_over: bool,
    /// A person resumed a parked model call: the next attempt must start immediately.
    pub(crate) insists: bool,
    /// The conversation is being made shorter.
    pub(crate) shrinking: Option<Shrinking>,
    /// The measures taken to make the next call fit.
    pub(crate) preparing: Preparing,
    /// The window limits that the last overflow revealed.
    pub(crate) window: Option<Window>,
    /// The number of titles requested.
    pub(crate) titles: u32,
    /// The prefix hash of the last request (see `Scene`).
    pub(crate) sent_prefix: Option<u64>,
    /// The prefix hash of the last request that was answered.
    pub(crate) warm_prefix: Option<u64>,
    /// Whether the parent has this sub-agent's completion report; none: it was not sent, or is on its way.
    pub(crate) reported: Option<bool>,
    /// The spending of the tree of agents.
    pub(crate) tree: Tree,
    /// Recorded files.
    pub(crate) checkpoints: Checkpoints,
    /// The workspace is not on this machine, for this reason.
    pub(crate) lost_workspace: Option<String>,
    /// The setup of the workspace failed.
    pub(crate) failed_setup: Option<FailedSetup>,
    /// Nothing new may start.
    pub(crate) draining: bool,
    /// The same, because the session is not meant to run on this node.
    pub(crate) only_ends: bool,
}

/// A streaming attempt.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    /// The text so far, up to the limit.
    pub(crate) partial: String,
    pub(crate) stutter: Stutter,
}

impl Live {
    /// An attempt without any text so far.
    pub(crate) fn of(call: CallId, attempt: u32) -> Self {
        Self {
            call,
            attempt,
            partial: String::new(),
            stutter: Stutter::default(),
        }
    }
}

/// An answer that is not in the log yet, because the verdicts on its calls belong to the same append.
#[derive(Debug, Clone)]
pub(crate) struct UnrecordedAnswer {
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    /// The answer, with our own tool call ids.
    pub(crate) answer: ModelAnswer,
    pub(crate) rulings: BTreeMap<ToolCallId, Box<Ruling>>,
}

/// The outcome of judging a call.
#[derive(Debug, Clone)]
pub(crate) enum Ruling {
    /// The gate's verdict; without a plan it is treated as a denial.
    Verdict(Verdict, Option<CallPlan>),
    /// The call could not be prepared.
    Refused(ToolOutcome),
}

impl Volatile {
    /// Whether a sub-agent's completion report is left to the next incarnation: after a drain, the parent can wait for it. A
    /// session that is here only to end cannot, since the parent ends here, too.
    pub(crate) const fn reports_later(&self) -> bool {
        self.draining && !self.only_ends
    }

    /// Drops everything known about a turn that is over.
    pub(crate) fn forget_turn(&mut self) {
        self.live = None;
        self.answer = None;
        self.hooked.clear();
        self.plans.clear();
        self.running.clear();
        self.insists = false;
        self.shrinking = None;
        self.launched();
    }

    /// Drops the preparations for a step that has begun, or will not.
    pub(crate) fn launched(&mut self) {
        self.backoff_over = false;
        self.may_stop = None;
        self.preparing.launched();
        self.tree.used();
    }
}
