//! The state of a session, folded from its log. Changes only in `apply`; holds counts and ids, not the conversation.

pub(crate) mod apply;
pub(crate) mod apply_call;
pub(crate) mod apply_model;
pub(crate) mod apply_turn;
pub(crate) mod fold_error;
pub(crate) mod phase;
pub(crate) mod shown_settings;
pub(crate) mod status;

use crate::attempts::outer::Outer;
use crate::calls::open_call::OpenCall;
use crate::checkpoints::RecordedFiles;
use crate::planning::{Plan, TurnPlan};
use crate::steps::surroundings::Surroundings;
use crate::tree::delegate::Child;
use agentd_protocol::{
    ApprovalId, Budget, EndReason, Grant, HistoryStarted, InputId, IntentSource, OpenApproval,
    PermissionMode, QueuedInput, RunningJob, Seq, SessionCreated, SessionId, Spent, Timestamp, TodoItem,
    ToolCallId, TurnError, TurnId, UnmadeCall, Usage, WorkspaceRestored,
};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

pub use crate::durable::phase::{Attempt, Phase};

/// How many decided approvals and joined inputs to remember, so that a late command gets `conflict`, not `not found`.
pub(crate) const REMEMBERED: usize = 256;

/// The most bytes of a turn's last text that are kept for `turn.finished`.
pub(crate) const MAX_TEXT_BYTES: usize = 65_536;

/// A session's state according to its log.
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of a log that do not depend on each other"
)]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Durable {
    /// The session that the log belongs to.
    pub session: SessionId,
    /// The last seq; 0 before the first event.
    pub head: Seq,
    /// `session.created` with all later updates; `None` before that event.
    pub settings: Option<SessionCreated>,
    /// When the session was created.
    pub created_at: Timestamp,
    /// The time of the last event.
    pub updated_at: Timestamp,
    /// When and why it was paused.
    pub paused: Option<Mark>,
    /// It was paused because its parent was, and resumes with the parent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused_with_parent: bool,
    /// When and why it was closed.
    pub closed: Option<Mark>,
    /// Accepted inputs that have not joined the conversation.
    pub inbox: Vec<Waiting>,
    /// The running turn.
    pub turn: Option<Turn>,
    /// Approvals without an answer.
    pub approvals: Vec<OpenApproval>,
    /// The most recently decided approvals.
    pub decided: VecDeque<ApprovalId>,
    /// The most recent inputs that joined or were withdrawn.
    pub gone: VecDeque<InputId>,
    /// Rules that a person granted for this session.
    pub grants: Vec<Grant>,
    /// The grants that were given permanently: they hold no longer than the fleet-wide rule derived from them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<Grant>,
    /// Sums over all turns.
    pub totals: Totals,
    /// How the last turn ended.
    pub last: Option<LastTurn>,
    /// The model has been warned that a budget is nearly used up.
    pub budget_warned: bool,
    /// What model calls pass on to later ones: credentials, lessons, stand-ins, the prompt cache.
    pub outer: Outer,
    /// The hooks have been notified that the session begins.
    pub greeted: bool,
    /// The agent's to-do list.
    pub todo: Vec<TodoItem>,
    /// Background jobs that run.
    pub jobs: Vec<RunningJob>,
    /// The number of the last background job.
    pub jobs_started: u32,
    /// How jobs ended, as text that the model has not read yet.
    pub job_news: Vec<String>,
    /// Open work on files or history; no turn starts meanwhile.
    pub history: Option<OpenHistory>,
    /// The mode and the date that the model knows.
    pub told: Surroundings,
    /// The permission mode to restore after plan mode.
    pub before_plan: Option<PermissionMode>,
    /// The current plan.
    pub plan: Plan,
    /// Sub-agents that have not ended.
    pub children: BTreeMap<SessionId, Child>,
    /// The number of sub-agents started so far.
    pub subagents: u32,
    /// What ended sub-agents spent, including their descendants.
    pub below: Spent,
    /// For a sub-agent: the text of its last turn, which is its result.
    pub last_words: String,
    /// A principal has asked for a compaction.
    pub compaction_asked: bool,
    /// A summary of the session so far, in a few sentences.
    pub summary: Option<String>,
    /// Recorded files.
    #[serde(default)]
    pub files: RecordedFiles,
    /// The setup commands of the workspace have run.
    #[serde(default)]
    pub prepared: bool,
    /// The workspace was made again, and the model does not know yet.
    #[serde(default)]
    pub restored: Option<Box<WorkspaceRestored>>,
    /// The node with the working directory, if the session has moved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub home: String,
}

/// Work on files or history that has started and not ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpenHistory {
    /// The seq of its `history.started`.
    pub seq: Seq,
    /// The work.
    pub started: HistoryStarted,
}

/// When and why something began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// When it began.
    pub at: Timestamp,
    /// Why.
    pub reason: String,
}

/// A queued input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Its entry in the queue listing.
    pub queued: QueuedInput,
    /// The model for the turn that it starts.
    pub model: Option<String>,
    /// A turn has begun with it. If that turn could not call a model, it joins the next call and starts no further turn.
    pub taken: bool,
}

/// Sums over all turns.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Totals {
    /// Steps.
    pub steps: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// US dollars.
    pub cost_usd: f64,
    /// Milliseconds inside turns, without waiting for people and without pauses.
    pub time_ms: u64,
}

/// How the last turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastTurn {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: EndReason,
    /// What went wrong.
    pub error: Option<TurnError>,
}

/// The running turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// When it began.
    pub started_at: Timestamp,
    /// The model requested by its starting input.
    pub model: Option<String>,
    /// Steps taken.
    pub steps: u32,
    /// Steps taken when a person last said "go on"; the step cap counts from here.
    pub steps_granted: u32,
    /// Tool calls made.
    pub tool_calls: u32,
    /// Tokens.
    pub usage: Usage,
    /// US dollars.
    pub cost_usd: f64,
    /// The model's last text, at most 64 KiB of it.
    pub text: String,
    /// Its current activity.
    pub phase: Phase,
    /// The calls of the current step, in the model's order.
    pub calls: Vec<OpenCall>,
    /// A call was denied, and denials stop the turn.
    pub denied: bool,
    /// The step cap is reached, and the model must summarise without tools.
    pub summarizing: bool,
    /// A person chose to stop at the step cap.
    pub stopped_at_limit: bool,
    /// The counters of the guards.
    pub guards: crate::steps::guards::Guards,
    /// How often hooks made it continue when it was about to end.
    pub stops: u32,
    /// The hook that requested another model call.
    pub goes_on: Option<String>,
    /// Whether it starts with a plan.
    pub planning: TurnPlan,
    /// What determined the intent of its inputs, once that is done.
    pub classified: Option<IntentSource>,
    /// A call in the last answer's text that was not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmade: Option<UnmadeCall>,
    /// Compactions because the conversation was too long for the model.
    pub compactions: u32,
    /// The number of compactions in a row without a step between them, and the step of the last one.
    pub compacted: (u32, u32),
}

impl Turn {
    /// Whether the model has not produced any text in it.
    pub(crate) fn is_silent(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// The number of compactions in a row, if the last was for the step that begins now.
    pub(crate) const fn in_row(&self) -> u32 {
        let (times, step) = self.compacted;
        if self.steps.saturating_sub(step) <= 1 {
            times
        } else {
            0
        }
    }
}

impl Durable {
    /// The state before the first event.
    #[must_use]
    pub fn new(session: SessionId) -> Self {
        Self {
            session,
            head: 0,
            settings: None,
            created_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            paused: None,
            paused_with_parent: false,
            closed: None,
            inbox: Vec::new(),
            turn: None,
            approvals: Vec::new(),
            decided: VecDeque::new(),
            gone: VecDeque::new(),
            grants: Vec::new(),
            always: Vec::new(),
            totals: Totals::default(),
            last: None,
            budget_warned: false,
            outer: Outer::default(),
            greeted: false,
            todo: Vec::new(),
            jobs: Vec::new(),
            jobs_started: 0,
            job_news: Vec::new(),
            history: None,
            told: Surroundings::default(),
            before_plan: None,
            plan: Plan::default(),
            children: BTreeMap::new(),
            subagents: 0,
            below: Spent::default(),
            last_words: String::new(),
            compaction_asked: false,
            summary: None,
            files: RecordedFiles::default(),
            prepared: false,
            restored: None,
            home: String::new(),
        }
    }

    /// Whether the running turn's model call is parked for a rate limit, a quota or a credential.
    #[must_use]
    pub fn parked(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.phase.parked())
    }

    /// The calls of the current step that have no result yet.
    pub fn open_calls(&self) -> impl Iterator<Item = &OpenCall> {
        self.turn
            .iter()
            .flat_map(|turn| &turn.calls)
            .filter(|call| call.is_open())
    }

    /// The configured name of the model that the next call uses.
    #[must_use]
    pub fn model(&self) -> &str {
        let of_turn = self.turn.as_ref().and_then(|turn| turn.model.as_deref());
        of_turn
            .or_else(|| self.settings.as_ref().map(|settings| settings.model.as_str()))
            .unwrap_or_default()
    }

    /// The hard budget.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.settings
            .as_ref()
            .map(|settings| settings.budget)
            .unwrap_or_default()
    }

    pub(crate) fn call(&self, id: ToolCallId) -> Option<&OpenCall> {
        self.turn.as_ref()?.calls.iter().find(|call| call.id == id)
    }

    pub(crate) fn approval(&self, id: ApprovalId) -> Option<&OpenApproval> {
        self.approvals.iter().find(|open| open.approval == id)
    }

    pub(crate) fn waiting(&self, id: InputId) -> Option<&Waiting> {
        self.inbox.iter().find(|waiting| waiting.queued.input == id)
    }
}
