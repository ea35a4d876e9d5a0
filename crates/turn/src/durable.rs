//! What the log says of a session, folded. Changes only in `apply`; holds counts and ids, not the conversation.

use crate::delegate::Child;
use crate::open_call::OpenCall;
use crate::outer::Outer;
use crate::planning::{Plan, TurnPlan};
use crate::told::Told;
use agentd_protocol::{
    ApprovalId, Budget, EndReason, HistoryStarted, InputId, IntentSource, OpenApproval, PermissionMode,
    QueuedInput, RunningJob, Seq, SessionCreated, SessionId, Spent, Timestamp, TodoItem, ToolCallId,
    TurnError, TurnId, Usage,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

pub use crate::phase::{Attempt, Phase};

/// Decided approvals and joined inputs that are remembered, so that who comes late is told `conflict`, not `not found`.
pub(crate) const REMEMBERED: usize = 256;

/// Bytes of the last text of a turn that are kept for `turn.finished`.
pub(crate) const MAX_TEXT_BYTES: usize = 65_536;

/// A session's state as its log tells it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of a log that do not depend on each other"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Durable {
    /// Whose log.
    pub session: SessionId,
    /// The last seq; 0 before the first event.
    pub head: Seq,
    /// `session.created` as updated since; `None` before it.
    pub settings: Option<SessionCreated>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When the last event was decided.
    pub updated_at: Timestamp,
    /// Paused since when and why.
    pub paused: Option<Mark>,
    /// It is paused because its parent is, and goes on with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused_with_parent: bool,
    /// Closed since when and why.
    pub closed: Option<Mark>,
    /// Accepted inputs that have not joined the conversation.
    pub inbox: Vec<Waiting>,
    /// The running turn.
    pub turn: Option<Turn>,
    /// Approvals that wait for an answer.
    pub approvals: Vec<OpenApproval>,
    /// The last decided approvals.
    pub decided: VecDeque<ApprovalId>,
    /// The last inputs that joined or were taken back.
    pub gone: VecDeque<InputId>,
    /// Rules that a person granted for this session.
    pub grants: Vec<String>,
    /// Those of them that were granted for good: they hold no longer than the fleet's rule that came of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<String>,
    /// Sums over all turns.
    pub totals: Totals,
    /// How the last turn ended.
    pub last: Option<LastTurn>,
    /// The model was told that a budget nears its end.
    pub budget_warned: bool,
    /// What model calls leave for later ones: credentials, lessons, stand-ins, the prompt cache.
    #[serde(default)]
    pub outer: Outer,
    /// The hooks were told that the session begins.
    #[serde(default)]
    pub greeted: bool,
    /// What the agent means to do.
    #[serde(default)]
    pub todo: Vec<TodoItem>,
    /// Background jobs that run.
    #[serde(default)]
    pub jobs: Vec<RunningJob>,
    /// The number of the last background job.
    #[serde(default)]
    pub jobs_started: u32,
    /// What became of jobs, in words that the model has not read.
    #[serde(default)]
    pub job_news: Vec<String>,
    /// Files are being put back, or the conversation is going back: no turn starts meanwhile.
    #[serde(default)]
    pub history: Option<OpenHistory>,
    /// What the model was told of the mode and the date.
    #[serde(default)]
    pub told: Told,
    /// The mode that follows plan mode.
    #[serde(default)]
    pub before_plan: Option<PermissionMode>,
    /// The plan of the present work.
    #[serde(default)]
    pub plan: Plan,
    /// Sub-agents that have not ended.
    #[serde(default)]
    pub children: BTreeMap<SessionId, Child>,
    /// How many sub-agents there have been.
    #[serde(default)]
    pub subagents: u32,
    /// What those that ended spent, with all below them.
    #[serde(default)]
    pub below: Spent,
    /// Of a sub-agent: the text of its last turn, which is its result.
    #[serde(default)]
    pub last_words: String,
    /// A principal wants the conversation compacted.
    #[serde(default)]
    pub compaction_asked: bool,
    /// What was done so far, in a few sentences.
    #[serde(default)]
    pub summary: Option<String>,
}

/// Work on history that was started and has not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenHistory {
    /// The seq of its `history.started`.
    pub seq: Seq,
    /// What.
    pub started: HistoryStarted,
}

/// Since when, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Since when.
    pub at: Timestamp,
    /// Why.
    pub reason: String,
}

/// An input that waits to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// How it is listed.
    pub queued: QueuedInput,
    /// The model for the turn it starts.
    pub model: Option<String>,
    /// A turn began with it; when that turn could not call a model, it joins the next call and starts no turn again.
    pub taken: bool,
}

/// Sums over all turns.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Steps.
    pub steps: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// US dollars.
    pub cost_usd: f64,
    /// Milliseconds inside turns, without the waiting for people and pauses.
    pub time_ms: u64,
}

/// How the last turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastTurn {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: EndReason,
    /// What went wrong.
    pub error: Option<TurnError>,
}

/// The running turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// When it began.
    pub started_at: Timestamp,
    /// The model that its starting input asked for.
    pub model: Option<String>,
    /// Steps taken.
    pub steps: u32,
    /// Steps at the last "go on" of a person; the cap counts from here.
    pub steps_granted: u32,
    /// Tool calls made.
    pub tool_calls: u32,
    /// Tokens.
    pub usage: Usage,
    /// US dollars.
    pub cost_usd: f64,
    /// The model's last text, at most 64 KiB of it.
    pub text: String,
    /// What it is doing.
    pub phase: Phase,
    /// The calls of the current step, in the model's order.
    pub calls: Vec<OpenCall>,
    /// A call was denied, and denials stop the turn.
    pub denied: bool,
    /// The step cap is reached and the model was told to sum up without tools.
    pub summarizing: bool,
    /// A person said stop at the step cap.
    pub stopped_at_limit: bool,
    /// What the guards count.
    pub guards: crate::guards::Guards,
    /// How often hooks had it go on when it was about to end.
    #[serde(default)]
    pub stops: u32,
    /// The hook that wants another model call.
    #[serde(default)]
    pub goes_on: Option<String>,
    /// Whether it begins with a plan.
    #[serde(default)]
    pub planning: TurnPlan,
    /// Who found out what its inputs want, once that is done.
    #[serde(default)]
    pub classified: Option<IntentSource>,
    /// Compactions because the conversation was too long for the model.
    #[serde(default)]
    pub compactions: u32,
    /// Compactions without a step between them, and the step of the last one.
    #[serde(default)]
    pub compacted: (u32, u32),
}

impl Turn {
    /// Whether the model has said nothing in it.
    pub(crate) fn is_silent(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Compactions in a row, the last of them for the step that begins now.
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
    /// Before the first event.
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
            told: Told::default(),
            before_plan: None,
            plan: Plan::default(),
            children: BTreeMap::new(),
            subagents: 0,
            below: Spent::default(),
            last_words: String::new(),
            compaction_asked: false,
            summary: None,
        }
    }

    /// The running turn's model call waits at rest for a rate limit, a quota or a credential.
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
