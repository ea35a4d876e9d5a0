//! Payloads of events inside a turn: model calls, tool calls, approvals.

use crate::binding::{About, Binding};
use crate::block::Block;
use crate::call::{Choice, EffectClass, FailureClass, Reading, StopReason, ToolOutcome, Verdict};
use crate::ids::{ApprovalId, CallId, InputId, ToolCallId};
use crate::limits::{Latency, SandboxLevel, ThinkingLevel};
use crate::question::Basis;
use crate::request_item::RequestItem;
use crate::stamp::Timestamp;
use crate::usage::Usage;
use crate::vocabulary::{ApprovalKind, Decision, EndReason, Scope, TurnError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `turn.started`: a turn began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnStarted {
    /// The inputs that started it.
    #[serde(default)]
    pub inputs: Vec<InputId>,
}

/// `model.started`: one attempt of a model call begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelStarted {
    /// The logical call.
    pub call: CallId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The step of the turn, from 1.
    pub step: u32,
    /// The maximum number of steps of the turn.
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
    /// Our estimate of the input tokens.
    pub input_tokens_estimate: u64,
    /// The call offers no tools (a summary at the limit).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tools_off: bool,
    /// The configured name of the model; absent in old logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<String>,
    /// How hard the model thinks; absent: its own default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingLevel>,
    /// The request asks the provider to keep the prompt cached for an hour.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cache_hour: bool,
}

/// `model.finished`: the model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelFinished {
    /// The logical call.
    pub call: CallId,
    /// The attempt that answered.
    pub attempt: u32,
    /// The answer; tool calls carry our ids.
    #[serde(default)]
    pub content: Vec<Block>,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// The tokens used.
    pub usage: Usage,
    /// The cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How long it took.
    pub latency: Latency,
    /// The credential that was used, if it differs from the one in `model.started`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// What was repaired or doubtful in its calls.
    #[serde(default, skip_serializing_if = "Reading::is_plain")]
    pub reading: Reading,
}

/// How the next attempt of a model call differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Remedy {
    /// It uses another credential of the same provider.
    Rotate {
        /// Its name.
        credential: String,
    },
    /// It uses another thinking level.
    Think {
        /// The new level.
        level: ThinkingLevel,
    },
    /// It leaves out a part of the request that the server refuses.
    Without {
        /// The part.
        part: RequestPart,
    },
    /// It leaves out items that the server refuses, as later requests to this model do. The log keeps them.
    LeaveOut {
        /// All items that are left out from now on.
        items: Vec<RequestItem>,
        /// The items of which at least one is refused, while it is not known which.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        among: Vec<RequestItem>,
    },
    /// It uses another model.
    Fallback {
        /// Its configured name.
        model: String,
    },
    /// It compacts the conversation first.
    Compact,
    /// It cuts long tool results first.
    TruncateResults,
    /// The session waits for `retry_at` and holds neither memory nor a permit.
    Park,
}

/// An optional part of a request that some servers refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequestPart {
    /// The temperature.
    Temperature,
    /// The reasoning of earlier answers.
    Reasoning,
    /// The thinking level, or the switch that turns thinking off.
    ThinkingLevel,
    /// The marks at which the server caches the prompt.
    CacheMarks,
    /// The lifetime of an hour in these marks.
    CacheHour,
    /// All images.
    Images,
    /// The request for token counts at the end of a stream.
    StreamOptions,
    /// The name of the output limit: it has the other one of its two names instead.
    LimitName,
    /// The choice of tools, and whether several calls may come at once.
    ToolChoice,
    /// The role `developer`: the role is `system` instead.
    DeveloperRole,
}

/// `model.failed`: an attempt failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelFailed {
    /// The logical call.
    pub call: CallId,
    /// The attempt that failed.
    pub attempt: u32,
    /// The class of the failure.
    pub class: FailureClass,
    /// The provider's message, redacted.
    pub message: String,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// When the next attempt starts; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// The text up to the cancellation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// Tokens, if a complete answer arrived and was discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cost of that answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The credential that was used, if it differs from the one in `model.started`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// How the next attempt differs; absent: it repeats the request after a wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

/// `tool.proposed`: the model requested a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ToolProposed {
    /// Our id.
    pub tool_call: ToolCallId,
    /// The canonical name, or the model's own if there is none.
    pub name: String,
    /// The arguments.
    pub input: Value,
    /// Its index among the calls of the step.
    pub index: u32,
}

/// `verdict.given`: the gate judged a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct VerdictGiven {
    /// The call.
    pub tool_call: ToolCallId,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// `approval.asked`: agentd asks a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApprovalAsked {
    /// Its id.
    pub approval: ApprovalId,
    /// The subject of the question.
    pub kind: ApprovalKind,
    /// The call, for kind `tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<ToolCallId>,
    /// A summary in one line.
    pub title: String,
    /// Exactly what will happen.
    pub detail: String,
    /// Possible answers, for kinds `question` and `limit`.
    #[serde(default)]
    pub choices: Vec<Choice>,
    /// The scopes that an `allow` may have.
    #[serde(default)]
    pub scopes: Vec<Scope>,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The rule that the scopes `session` and `always` would add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// The exact call and files that an `allow` covers, for kind `tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    /// Further information for the person, for kind `tool`.
    #[serde(default, skip_serializing_if = "About::is_empty")]
    pub about: About,
}

/// `approval.escalated`: no one answered in time, and the question stays open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApprovalEscalated {
    /// The approval.
    pub approval: ApprovalId,
    /// How many times this has happened, from 1.
    pub level: u32,
    /// The new expiry time; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// `approval.decided`: a person answered, or time ran out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApprovalDecided {
    /// The approval.
    pub approval: ApprovalId,
    /// The decision.
    pub decision: Decision,
    /// The answer, for questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// How far an `allow` reaches.
    pub scope: Scope,
    /// With scope `always`: in every directory and with every content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub everywhere: bool,
    /// The person's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the answer rests on; absent for denials, for ends without an answer, and in logs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
}

/// `tool.started`: a tool begins; durable before its effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ToolStarted {
    /// The call.
    pub tool_call: ToolCallId,
    /// One line for people.
    pub title: String,
    /// The class of its effects.
    pub effect: EffectClass,
    /// How it is confined.
    pub sandbox: SandboxLevel,
    /// Whether the call may run again after a crash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
}

/// `tool.finished`: a tool call has its only result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ToolFinished {
    /// The call.
    pub tool_call: ToolCallId,
    /// The result.
    #[serde(flatten)]
    pub outcome: ToolOutcome,
}

/// `turn.finished`: the turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnFinished {
    /// Why the turn ended.
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
    /// The error, if the turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
}

impl TurnFinished {
    /// Whether the turn ended by itself, with an answer.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.reason == EndReason::Completed && !self.text.trim().is_empty()
    }
}
