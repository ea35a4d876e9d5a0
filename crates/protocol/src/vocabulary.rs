//! The small vocabularies of events: kinds, scopes, decisions, reasons.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Labels of a session: `team=infra`.
pub type Labels = BTreeMap<String, String>;

/// Labels as people write them: `gpu=yes,zone=a`.
#[must_use]
pub fn listed(labels: &Labels) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(",")
}

/// Whether this can be the key of a label: 1 to 63 of `A-Z a-z 0-9 . _ - /`, with a letter or digit at both ends.
#[must_use]
pub fn label_word(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= MAX_LABEL_KEY
        && text.chars().all(inner)
        && edge(text.chars().next())
        && edge(text.chars().next_back())
}

/// Characters of the key of a label.
pub const MAX_LABEL_KEY: usize = 63;

/// How an input joins the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// It starts a turn; if a turn is running, it steers that turn.
    Start,
    /// It joins the running turn at its next model call.
    Steer,
    /// It starts the next turn.
    Queue,
    /// It starts the next turn together with the other `collect` inputs that wait directly behind it.
    Collect,
    /// It ends the running turn and starts the next.
    Interrupt,
}

/// Why agentd added a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The model announced an action and did not take it.
    IntentNudge,
    /// A guard intervened.
    Guard,
    /// A reminder of the plan.
    PlanReminder,
    /// Context that a hook added.
    HookContext,
    /// A limit is near.
    LimitNotice,
    /// A background job ended or is lost.
    JobNotice,
    /// A person put files back, or the conversation back to an earlier point.
    HistoryNotice,
    /// Something around the session changed: the mode, the date.
    ContextNotice,
}

/// What an approval is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// A tool call.
    Tool,
    /// A plan.
    Plan,
    /// A question of the model.
    Question,
    /// A limit: continue or stop.
    Limit,
}

/// How far an `allow` reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Only this call.
    #[default]
    Once,
    /// This session.
    Session,
    /// Every session of this project, permanently, as long as the files that the command runs stay the same.
    Always,
    /// Every session of the fleet, permanently, in every directory and with every content.
    Everywhere,
}

/// The answer to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Yes.
    Allow,
    /// No.
    Deny,
    /// An answer to a question.
    Answer,
    /// Time ran out.
    Expired,
    /// The question no longer needs an answer.
    Withdrawn,
}

/// Which limit was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Steps.
    Steps,
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
    /// Time.
    Time,
    /// The depth of sub-agents.
    Depth,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The model finished.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It reached the step limit.
    MaxTurns,
    /// Chat is disabled: `max_turns = 0`.
    ChatDisabled,
    /// The output limit truncated the answer.
    Truncated,
    /// The model repeated itself in a loop.
    LoopDetected,
    /// A call was denied, with `on_deny = "stop"`.
    Denied,
    /// The provider refused.
    Refused,
    /// The conversation is too long.
    ContextOverflow,
    /// The model calls failed for good.
    ModelError,
    /// Every tool call failed, step after step, and the model ignored the request to stop.
    ToolError,
    /// A budget is exhausted.
    Budget,
    /// The turn could not start: a key, a model or a directory is missing.
    InitializationFailed,
}

/// What went wrong in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnError {
    /// A stable code: a failure class, or the end reason.
    pub class: String,
    /// What happened and how to fix it.
    pub message: String,
}

/// One piece of work that was in flight when the daemon stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Recovered {
    /// `model_call`, `tool_call`, `approval`.
    pub what: String,
    /// Its id.
    pub id: String,
    /// How it was closed: `retried`, `interrupted`, `run_again`, `kept`.
    pub how: String,
}
