//! One tool call of the current step, from the model's words to its one result.

use agentd_protocol::{ApprovalId, Binding, EffectClass, SandboxLevel, Timestamp, ToolCallId, ToolStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool call of the current step. Closed ones keep only what the guards need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    /// Our id.
    pub id: ToolCallId,
    /// Its place among the step's calls.
    pub index: u32,
    /// The tool's name; empty once it is closed.
    pub name: String,
    /// The arguments; null once it is closed.
    pub input: Value,
    /// How far it is.
    pub stage: Stage,
    /// What a person was asked about: it runs only if this is still so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Binding>,
}

/// How far a tool call is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// The model's answer names it.
    Named,
    /// It is proposed and waits for its verdict.
    Proposed,
    /// The verdict is "ask"; the approval follows.
    ToAsk,
    /// A person is asked.
    Asking(ApprovalId),
    /// It may run.
    Allowed,
    /// It may not run; the text is for the model.
    Denied(String),
    /// The person answered its question; the text is for the model.
    Answered(String),
    /// It was started and has no result.
    Running(Started),
    /// It has its result.
    Closed(ToolStatus),
}

/// What `tool.started` says; enough to run an idempotent call again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// When.
    pub at: Timestamp,
    /// One line for people.
    pub title: String,
    /// What it does to the world.
    pub effect: EffectClass,
    /// How it is confined.
    pub sandbox: SandboxLevel,
    /// Whether it may be run again after a crash.
    pub idempotent: bool,
}

impl OpenCall {
    /// Whether it has no result yet.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self.stage, Stage::Closed(_))
    }

    /// Whether it was started and has no result.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running(_))
    }
}
