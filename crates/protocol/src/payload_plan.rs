//! Payloads of modes, intents and explicit plans.

use crate::ids::{ApprovalId, ToolCallId};
use crate::limits::PermissionMode;
use serde::{Deserialize, Serialize};

/// `mode.changed`: the permission mode changed inside a turn. A person's own change is `session.updated`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeChanged {
    /// Before.
    pub from: PermissionMode,
    /// From now on.
    pub to: PermissionMode,
    /// The approval that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
}

/// What an input wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Intent {
    /// Something is to be made, changed or mended.
    CodingTask,
    /// What can you do?
    CapabilityQuery,
    /// How does this project work?
    RepoAnalysis,
    /// A greeting, thanks, talk.
    GeneralChat,
    /// It is not clear.
    Uncertain,
}

/// Who says what an input wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentSource {
    /// Its words.
    #[default]
    Heuristics,
    /// A model.
    Model,
}

/// `intent.classified`: what the inputs of a turn want, and what follows for planning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntentClassified {
    /// The label.
    pub label: Intent,
    /// From 0 to 1.
    pub confidence: f64,
    /// Why.
    pub reason: String,
    /// Whether the turn begins with a plan.
    pub planning: bool,
    /// Who says so.
    #[serde(default)]
    pub source: IntentSource,
}

/// How far a step of a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// To be done.
    Pending,
    /// Done, with evidence.
    Done,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// What is done.
    pub title: String,
    /// How it is found out that it is done.
    pub check: String,
    /// How far it is.
    pub status: PlanStatus,
    /// What the check gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// `plan.updated`: the whole plan as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanUpdated {
    /// The call that did it.
    pub tool_call: ToolCallId,
    /// The steps.
    #[serde(default)]
    pub steps: Vec<PlanStep>,
    /// How often the plan was changed since it was made.
    pub replans: u32,
    /// Why it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A plan as it was at an earlier point.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanThen {
    /// Its steps.
    pub steps: Vec<PlanStep>,
    /// How often it was changed.
    #[serde(default)]
    pub replans: u32,
}

impl PlanThen {
    /// There was none.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.steps.is_empty()
    }
}
