//! The summary of a session: its list row and derived state, available without reading the log.

use crate::event::Seq;
use crate::ids::{InputId, SessionId, TurnId};
use crate::limits::{Budget, LoopLimits, PermissionMode};
use crate::open_approval::OpenApproval;
use crate::payload_job::RunningJob;
use crate::payload_subagent::Spent;
use crate::payload_todos::TodoItem;
use crate::stamp::Timestamp;
use crate::usage::Usage;
use crate::vocabulary::{Delivery, Labels, TurnError};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;

/// The reason why a session waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// A person's approval of a call.
    Approval,
    /// A person's answer.
    Question,
    /// A person's decision on a limit.
    Limit,
    /// A child session.
    Child,
    /// A permit of the model client or the tool executor.
    Permit,
    /// A provider's rate limit.
    RateLimit,
    /// A provider that is down or overloaded.
    Provider,
    /// Money or quota.
    Quota,
    /// A working credential.
    Credentials,
    /// Its working directory.
    Workspace,
}

/// The derived state of a session. Text form: `running(model)`, `waiting(approval)`, `idle`, ….
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunState {
    /// Created, not started.
    Queued,
    /// Being started.
    Starting,
    /// A model call runs.
    RunningModel,
    /// Tool calls run.
    RunningTool,
    /// Waiting; the reason says for what.
    Waiting(WaitReason),
    /// Waiting for the next attempt of a model call.
    BackingOff,
    /// Its context is being compacted.
    Compacting,
    /// A person paused it.
    Paused,
    /// Nothing to do.
    Idle,
    /// Its last turn failed; it still takes input.
    Failed,
    /// It takes no more input.
    Closed,
    /// Its loop crashed too often or its log cannot be read; it needs an explicit resume.
    Faulted,
}

const STATES: [(RunState, &str); 21] = [
    (RunState::Queued, "queued"),
    (RunState::Starting, "starting"),
    (RunState::RunningModel, "running(model)"),
    (RunState::RunningTool, "running(tool)"),
    (RunState::Waiting(WaitReason::Approval), "waiting(approval)"),
    (RunState::Waiting(WaitReason::Question), "waiting(question)"),
    (RunState::Waiting(WaitReason::Limit), "waiting(limit)"),
    (RunState::Waiting(WaitReason::Child), "waiting(child)"),
    (RunState::Waiting(WaitReason::Permit), "waiting(permit)"),
    (RunState::Waiting(WaitReason::RateLimit), "waiting(rate_limit)"),
    (RunState::Waiting(WaitReason::Provider), "waiting(provider)"),
    (RunState::Waiting(WaitReason::Quota), "waiting(quota)"),
    (RunState::Waiting(WaitReason::Credentials), "waiting(credentials)"),
    (RunState::Waiting(WaitReason::Workspace), "waiting(workspace)"),
    (RunState::BackingOff, "backing_off"),
    (RunState::Compacting, "compacting"),
    (RunState::Paused, "paused"),
    (RunState::Idle, "idle"),
    (RunState::Failed, "failed"),
    (RunState::Closed, "closed"),
    (RunState::Faulted, "faulted"),
];

impl RunState {
    /// The text form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        STATES
            .iter()
            .find(|(state, _)| *state == self)
            .map_or("unknown", |(_, text)| text)
    }

    /// All states.
    pub fn all() -> impl Iterator<Item = Self> {
        STATES.iter().map(|(state, _)| *state)
    }

    /// Parses the text form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        STATES
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(state, _)| *state)
    }

    /// Whether a person must act before it continues.
    #[must_use]
    pub const fn blocked(self) -> bool {
        matches!(self.group(), Group::Person) || matches!(self, Self::Waiting(WaitReason::Workspace))
    }

    /// Whether nothing will happen without new input.
    #[must_use]
    pub const fn at_rest(self) -> bool {
        matches!(self, Self::Idle | Self::Failed | Self::Closed | Self::Faulted)
    }
}

/// What people want to know of a state first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Waiting for a person: an approval, an answer, a limit, quota or a credential.
    Person,
    /// Failed, faulted, or without its working directory.
    Failed,
    /// Waiting for a provider: a rate limit, an outage, the next attempt.
    Limited,
    /// At work: a model, a tool or a sub-agent.
    Running,
    /// Paused by a person.
    Paused,
    /// Idle.
    Idle,
    /// Closed.
    Closed,
}

impl RunState {
    /// The group of the state.
    #[must_use]
    pub const fn group(self) -> Group {
        match self {
            Self::Queued
            | Self::Starting
            | Self::RunningModel
            | Self::RunningTool
            | Self::Compacting
            | Self::Waiting(WaitReason::Child | WaitReason::Permit) => Group::Running,
            Self::Waiting(
                WaitReason::Approval
                | WaitReason::Question
                | WaitReason::Limit
                | WaitReason::Quota
                | WaitReason::Credentials,
            ) => Group::Person,
            Self::Waiting(WaitReason::RateLimit | WaitReason::Provider) | Self::BackingOff => Group::Limited,
            Self::Failed | Self::Faulted | Self::Waiting(WaitReason::Workspace) => Group::Failed,
            Self::Idle => Group::Idle,
            Self::Paused => Group::Paused,
            Self::Closed => Group::Closed,
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for RunState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for RunState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("unknown state {text:?}")))
    }
}

/// A state with its reason and start time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Status {
    /// The derived state.
    pub state: RunState,
    /// Why, as text for people.
    pub reason: String,
    /// When the state began.
    pub since: Timestamp,
    /// When the state ends, if known (back-off, rate limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The attempt of the model call, from the second on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Its place in the queue for a permit, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
}

impl Status {
    /// A state and its reason, with nothing else set.
    #[must_use]
    pub fn new(state: RunState, reason: impl Into<String>, since: Timestamp) -> Self {
        Self {
            state,
            reason: reason.into(),
            since,
            until: None,
            attempt: None,
            position: None,
        }
    }
}

/// Whether a number is left out.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// An input that has not joined the conversation yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueuedInput {
    /// Its id.
    pub input: InputId,
    /// How the input will join.
    pub delivery: Delivery,
    /// The first 200 characters of its text.
    pub preview: String,
    /// When it was accepted.
    pub at: Timestamp,
}

/// Where the files of a session are. The store reads this from its text, so the order of the fields stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionPlace {
    /// The node with the working directory; absent: the one that created the session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub home: String,
    /// The store has the files of the workspace, so that the session can go on at any node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

/// Everything that a list or a detail page shows of a session; the loop folds it from the log and stores it next to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Summary {
    /// The session.
    pub session: SessionId,
    /// Its title.
    pub name: String,
    /// The derived state with its reason and start time.
    #[serde(flatten)]
    pub status: Status,
    /// The model's configured name.
    pub model: String,
    /// The permission mode.
    pub mode: PermissionMode,
    /// The working directory.
    pub workdir: String,
    /// The node of the working directory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub place: SessionPlace,
    /// Labels that a node must have to run it and its sub-agents.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub requires: Labels,
    /// Labels.
    pub labels: Labels,
    /// The last seq.
    pub seq: Seq,
    /// Steps of all turns.
    pub steps: u64,
    /// Tokens of all turns.
    pub usage: Usage,
    /// Cost of all turns in US dollars.
    pub cost_usd: f64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The session that created it.
    #[serde(default)]
    pub parent: Option<SessionId>,
    /// The running turn.
    #[serde(default)]
    pub turn: Option<TurnId>,
    /// Open approvals.
    #[serde(default)]
    pub open_approvals: Vec<OpenApproval>,
    /// Inputs that wait to join.
    #[serde(default)]
    pub queue: Vec<QueuedInput>,
    /// The hard budget.
    pub budget: Budget,
    /// The last turn's error.
    #[serde(default)]
    pub last_error: Option<TurnError>,
    /// The agent's list of things to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo: Vec<TodoItem>,
    /// A summary of the work so far in a few sentences, if a model wrote one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Running background jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<RunningJob>,
    /// Milliseconds spent inside turns.
    #[serde(default)]
    pub time_ms: u64,
    /// Sub-agents that have not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<SessionId>,
    /// How many sub-agents the session has started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub subagents: u32,
    /// The spending of the ended sub-agents, including everything below them.
    #[serde(default)]
    pub below: Spent,
    /// It is paused, even if its state says something else: a command is running, or a question is open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// When a parked session continues by itself.
    #[serde(default)]
    pub wake_at: Option<Timestamp>,
    /// It has open work that continues by itself after a restart.
    #[serde(default)]
    pub resumable: bool,
    /// Changes when the name, the model, the mode, the labels or the budget change; `expect` of `session.update` takes it. Only
    /// `session.get` returns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_tag: Option<String>,
    /// The loop's limits and where each was set. Only `session.get` returns them; stored rows do not contain them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Box<LoopLimits>>,
}

impl Summary {
    /// The summary of a session of which only the status is known. Its creation time is the start of the status.
    #[must_use]
    pub fn new(session: SessionId, status: Status) -> Self {
        Self {
            session,
            name: String::new(),
            created_at: status.since,
            updated_at: status.since,
            status,
            model: String::new(),
            mode: PermissionMode::Default,
            workdir: String::new(),
            place: SessionPlace::default(),
            requires: Labels::new(),
            labels: Labels::new(),
            seq: 0,
            steps: 0,
            usage: Usage::default(),
            cost_usd: 0.0,
            parent: None,
            turn: None,
            open_approvals: Vec::new(),
            queue: Vec::new(),
            budget: Budget::default(),
            last_error: None,
            todo: Vec::new(),
            summary: None,
            jobs: Vec::new(),
            time_ms: 0,
            children: Vec::new(),
            subagents: 0,
            below: Spent::default(),
            paused: false,
            wake_at: None,
            resumable: false,
            settings_tag: None,
            limits: None,
        }
    }
}
