//! One tool call of the current step, from the model's request to its one result.

use agentd_protocol::{ApprovalId, Binding, EffectClass, SandboxLevel, Timestamp, ToolCallId, ToolStatus};
use serde::Serialize;
use serde_json::Value;

/// A tool call of the current step. Closed ones keep only what the guards need.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpenCall {
    /// Our id.
    pub id: ToolCallId,
    /// Its place among the step's calls.
    pub index: u32,
    /// The tool's name; empty once it is closed.
    pub name: String,
    /// The arguments; null once it is closed.
    pub input: Value,
    /// Its progress.
    pub stage: Stage,
    /// The approved binding: the call runs only if this still matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Binding>,
    /// Once it is closed: a hash of the call with its result. The states of golden logs lack it.
    #[serde(skip)]
    pub print: u64,
}

/// The progress of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Stage {
    /// It is part of the model's answer.
    Named,
    /// It was proposed and awaits its verdict.
    Proposed,
    /// The verdict is "ask"; the approval request follows.
    ToAsk,
    /// A person has been asked for approval.
    Asking(ApprovalId),
    /// It is allowed to run.
    Allowed,
    /// It must not run; the text is for the model.
    Denied(String),
    /// A person answered its question; the text is for the model.
    Answered(String),
    /// It has started and has no result.
    Running(Started),
    /// It has its result.
    Closed(ToolStatus),
}

/// The content of `tool.started`; enough to run an idempotent call again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Started {
    /// The time of the start.
    pub at: Timestamp,
    /// One line for people.
    pub title: String,
    /// The class of its side effects.
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
