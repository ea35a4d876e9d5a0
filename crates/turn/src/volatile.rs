//! What only this incarnation knows: what runs, what is being judged, which timers are set. Lost without harm.

use crate::context::Preparing;
use crate::input::{CallPlan, ModelAnswer, TimerKey};
use crate::overflow::{Shrinking, Window};
use crate::reporting::Telling;
use crate::stutter::Stutter;
use crate::topic::Topic;
use crate::tree::Tree;
use agentd_protocol::{
    ApprovalId, CallId, HookFinished, InputId, SidePurpose, ToolCallId, ToolOutcome, TurnId, Verdict,
};
use std::collections::{BTreeMap, BTreeSet};

/// The volatile state of an agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Volatile {
    /// The attempt whose kid runs.
    pub(crate) live: Option<Live>,
    /// An answer that waits for the verdicts on its calls.
    pub(crate) answer: Option<Answer>,
    /// Calls that are being judged.
    pub(crate) pending: BTreeSet<ToolCallId>,
    /// What hooks said of calls that are not in the log yet.
    pub(crate) hooked: BTreeMap<ToolCallId, Vec<HookFinished>>,
    /// What hooks are being asked besides, by the number of the asking.
    pub(crate) asked: BTreeMap<u64, Topic>,
    /// The number of the last asking.
    pub(crate) askings: u64,
    /// The asking by which hooks are told of the session's beginning.
    pub(crate) greeted: Option<u64>,
    /// Inputs that hooks let through, with what they add.
    pub(crate) screened: BTreeMap<InputId, Option<String>>,
    /// The turn against whose end hooks have nothing.
    pub(crate) may_stop: Option<TurnId>,
    /// How judged calls would run. In boxes: a map keeps room for eleven values as soon as it has one.
    pub(crate) plans: BTreeMap<ToolCallId, Box<CallPlan>>,
    /// Calls whose kid runs.
    pub(crate) running: BTreeSet<ToolCallId>,
    /// Background jobs that run.
    pub(crate) jobs: BTreeSet<u32>,
    /// Timers that are set, with their generation.
    pub(crate) timers: BTreeMap<TimerKey, u64>,
    /// Approvals whose deciders are being counted.
    pub(crate) counting: BTreeSet<ApprovalId>,
    /// The last generation of a timer.
    pub(crate) generation: u64,
    /// The back-off's timer fired.
    pub(crate) backoff_over: bool,
    /// A person ended the rest of the model call: the next attempt is to be made at once.
    pub(crate) insists: bool,
    /// The conversation is being made shorter.
    pub(crate) shrinking: Option<Shrinking>,
    /// What was done so that the next call fits.
    pub(crate) preparing: Preparing,
    /// What the last overflow taught of the model's window.
    pub(crate) window: Option<Window>,
    /// What models are asked beside the turn.
    pub(crate) sides: BTreeMap<CallId, SidePurpose>,
    /// Titles that were asked for.
    pub(crate) titles: u32,
    /// The provider counts the tokens of the next request.
    pub(crate) weighing: Option<CallId>,
    /// What stands before the conversation in the last request.
    pub(crate) sent_prefix: Option<u64>,
    /// The same of the last request that was answered.
    pub(crate) warm_prefix: Option<u64>,
    /// The seq of the work on the history that goes on here.
    pub(crate) reworking: Option<agentd_protocol::Seq>,
    /// How far the parent of this sub-agent was told of its end.
    pub(crate) telling: Telling,
    /// What the tree of agents spent.
    pub(crate) tree: Tree,
    /// Nothing new is started.
    pub(crate) draining: bool,
}

/// A streaming attempt.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    /// The text so far, bounded.
    pub(crate) partial: String,
    pub(crate) stutter: Stutter,
}

/// An answer that is not in the log yet, because the verdicts on its calls come in the same append.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    /// With our tool call ids.
    pub(crate) answer: ModelAnswer,
    pub(crate) rulings: BTreeMap<ToolCallId, Box<Ruling>>,
}

/// What came of judging a call.
#[derive(Debug, Clone)]
pub(crate) enum Ruling {
    /// The gate spoke; without a plan the verdict is a denial.
    Verdict(Verdict, Option<CallPlan>),
    /// It could not even be prepared.
    Refused(ToolOutcome),
}

impl Volatile {
    /// The turn is over: what was known of it is of no use.
    pub(crate) fn forget_turn(&mut self) {
        self.live = None;
        self.answer = None;
        self.pending.clear();
        self.hooked.clear();
        self.plans.clear();
        self.running.clear();
        self.counting.clear();
        self.backoff_over = false;
        self.insists = false;
        self.shrinking = None;
        self.may_stop = None;
        self.launched();
    }

    /// What was found out for a step was for the one that began, or does not.
    pub(crate) fn launched(&mut self) {
        self.preparing.launched();
        self.tree.used();
    }
}
