//! Payloads of events inside a turn: model calls, tool calls, approvals.

use crate::binding::{About, Binding};
use crate::block::Block;
use crate::call::{Choice, EffectClass, FailureClass, StopReason, ToolOutcome, Verdict};
use crate::ids::{ApprovalId, CallId, InputId, ToolCallId};
use crate::limits::{Latency, SandboxLevel, ThinkingLevel, Usage};
use crate::stamp::Timestamp;
use crate::vocabulary::{ApprovalKind, Decision, EndReason, Scope, TurnError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `turn.started`: a turn began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnStarted {
    /// The inputs that started it.
    #[serde(default)]
    pub inputs: Vec<InputId>,
}

/// `model.started`: one attempt of a model call begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelStarted {
    /// The logical call.
    pub call: CallId,
    /// From 1.
    pub attempt: u32,
    /// The step of the turn, from 1.
    pub step: u32,
    /// The cap of the turn.
    pub max_steps: u32,
    /// The inputs that join the transcript here.
    #[serde(default)]
    pub inputs: Vec<InputId>,
    /// The provider's name.
    pub provider: String,
    /// The provider's model id.
    pub model: String,
    /// The credential's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Our estimate.
    pub input_tokens_estimate: u64,
    /// The call is made without tools (a summary at the limit).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tools_off: bool,
    /// The configured name of the model; absent in old logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<String>,
    /// How hard the model is asked to think; absent: its own default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingLevel>,
}

/// `model.finished`: the model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFinished {
    /// The logical call.
    pub call: CallId,
    /// The attempt that answered.
    pub attempt: u32,
    /// The answer; tool calls carry our ids.
    #[serde(default)]
    pub content: Vec<Block>,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// Tokens.
    pub usage: Usage,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How long it took.
    pub latency: Latency,
    /// The credential that was used, where it is another than `model.started` said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// What the next attempt of a model call does differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Remedy {
    /// Another credential of the same provider.
    Rotate {
        /// Its name.
        credential: String,
    },
    /// Another thinking level.
    Think {
        /// Which.
        level: ThinkingLevel,
    },
    /// Without a part of the request that the server refuses.
    Without {
        /// Which.
        part: RequestPart,
    },
    /// Another model.
    Fallback {
        /// Its configured name.
        model: String,
    },
    /// The conversation is compacted first.
    Compact,
    /// Long tool results are cut first.
    TruncateResults,
    /// The session waits, without memory and permit, for `retry_at`.
    Park,
}

/// A part of a request that some servers refuse and that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestPart {
    /// The temperature.
    Temperature,
    /// The reasoning of earlier answers.
    Reasoning,
    /// How hard to think, or not to.
    ThinkingLevel,
}

/// `model.failed`: an attempt failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFailed {
    /// The logical call.
    pub call: CallId,
    /// The attempt.
    pub attempt: u32,
    /// What kind of failure.
    pub class: FailureClass,
    /// What the provider said, redacted.
    pub message: String,
    /// HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// When the next attempt starts; absent: gave up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The text so far, when cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// Tokens, when a whole answer came and was thrown away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What that answer cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The credential that was used, where it is another than `model.started` said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// What the next attempt does differently; absent: it only waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

/// `tool.proposed`: the model asked for a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolProposed {
    /// Our id.
    pub tool_call: ToolCallId,
    /// The canonical name, or what the model said when there is none.
    pub name: String,
    /// The arguments.
    pub input: Value,
    /// Its place among the step's calls.
    pub index: u32,
}

/// `verdict.given`: the gate judged a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerdictGiven {
    /// Which.
    pub tool_call: ToolCallId,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// `approval.asked`: a person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAsked {
    /// Its id.
    pub approval: ApprovalId,
    /// What about.
    pub kind: ApprovalKind,
    /// The call, for kind tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<ToolCallId>,
    /// One line.
    pub title: String,
    /// What exactly will happen.
    pub detail: String,
    /// Possible answers, for kinds question and limit.
    #[serde(default)]
    pub choices: Vec<Choice>,
    /// The scopes that an allow may have.
    #[serde(default)]
    pub scopes: Vec<Scope>,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The rule that session or always would add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// What an allow is given for, for kind tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    /// What a person should know besides, for kind tool.
    #[serde(default, skip_serializing_if = "About::is_empty")]
    pub about: About,
}

/// `approval.escalated`: nobody answered in time, and the question stays open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalEscalated {
    /// Which.
    pub approval: ApprovalId,
    /// How often by now, from 1.
    pub level: u32,
    /// When it expires now; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// `approval.decided`: a person, or time, answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalDecided {
    /// Which.
    pub approval: ApprovalId,
    /// What.
    pub decision: Decision,
    /// The answer, for questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// How far an allow reaches.
    pub scope: Scope,
    /// The person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// `tool.started`: a tool begins; durable before its effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolStarted {
    /// Which.
    pub tool_call: ToolCallId,
    /// One line for people.
    pub title: String,
    /// What it does to the world.
    pub effect: EffectClass,
    /// How it is confined.
    pub sandbox: SandboxLevel,
    /// Whether it may be run again after a crash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
}

/// `tool.finished`: a tool call has its one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFinished {
    /// Which.
    pub tool_call: ToolCallId,
    /// The result.
    #[serde(flatten)]
    pub outcome: ToolOutcome,
}

/// `turn.finished`: the turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnFinished {
    /// Why.
    pub reason: EndReason,
    /// The last text of the model in this turn.
    pub text: String,
    /// Steps taken.
    pub steps: u32,
    /// Tool calls made.
    pub tool_calls: u32,
    /// Tokens of the turn.
    pub usage: Usage,
    /// Cost of the turn.
    #[serde(default)]
    pub cost_usd: f64,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
}

impl TurnFinished {
    /// Whether it ended by itself, with an answer.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.reason == EndReason::Completed && !self.text.trim().is_empty()
    }
}
