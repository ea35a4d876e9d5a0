//! Payloads of modes, intents and explicit plans.

use crate::ids::{ApprovalId, ToolCallId};
use crate::limits::PermissionMode;
use serde::{Deserialize, Serialize};

/// `mode.changed`: the permission mode changed inside a turn. A person's own change is `session.updated`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModeChanged {
    /// The mode before.
    pub from: PermissionMode,
    /// The new mode.
    pub to: PermissionMode,
    /// The approval that changed the mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
}

/// The intent of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Intent {
    /// The user wants something created, changed or fixed.
    CodingTask,
    /// A question such as "What can you do?".
    CapabilityQuery,
    /// A question such as "How does this project work?".
    RepoAnalysis,
    /// A greeting, thanks or small talk.
    GeneralChat,
    /// The intent is unclear.
    Uncertain,
}

/// The classifier that determined an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum IntentSource {
    /// The words of the input.
    #[default]
    Heuristics,
    /// A model.
    Model,
}

/// `intent.classified`: the intent of a turn's inputs and its consequence for planning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct IntentClassified {
    /// The label.
    pub label: Intent,
    /// From 0 to 1.
    pub confidence: f64,
    /// Why this label was chosen.
    pub reason: String,
    /// Whether the turn begins with a plan.
    pub planning: bool,
    /// The classifier.
    #[serde(default)]
    pub source: IntentSource,
}

/// The progress of a plan step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not done yet.
    Pending,
    /// Done, with evidence.
    Done,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlanStep {
    /// The work to do.
    pub title: String,
    /// How to verify that the step is done.
    pub check: String,
    /// Its progress.
    pub status: PlanStatus,
    /// The result of the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// `plan.updated`: the whole current plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlanUpdated {
    /// The call that changed the plan.
    pub tool_call: ToolCallId,
    /// The steps.
    #[serde(default)]
    pub steps: Vec<PlanStep>,
    /// How many times the plan has changed since it was made.
    pub replans: u32,
    /// Why the plan changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A plan at an earlier point.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlanThen {
    /// Its steps.
    pub steps: Vec<PlanStep>,
    /// How many times it had changed.
    #[serde(default)]
    pub replans: u32,
}

impl PlanThen {
    /// Whether there was no plan.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.steps.is_empty()
    }
}
