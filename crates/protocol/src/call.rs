//! The vocabulary of model calls and tool calls.

use crate::limits::ThinkingLevel;
use crate::payload_turn::RequestPart;
use crate::request_item::RefusedItem;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The effects of a tool call. Adjacent `read` calls run in parallel; any other call is a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Reads files.
    Read,
    /// Writes files.
    Write,
    /// Runs a command.
    Exec,
    /// Talks to the network.
    Network,
    /// Touches nothing outside the session.
    None,
}

/// The decision of a [`Verdict`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Run it.
    Allow,
    /// Ask a person.
    Ask,
    /// Do not run it.
    Deny,
}

/// allow, ask or deny, with the rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Verdict {
    /// The decision.
    #[serde(rename = "verdict")]
    pub kind: VerdictKind,
    /// The rule that decided, as written (`Bash(rm -rf:*)`), or `mode:default`, `gate:error`, ….
    pub rule: String,
    /// Why, for people and for the model.
    pub reason: String,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// The call succeeded.
    Ok,
    /// The call failed; the text says why.
    Error,
    /// The call was not allowed to run.
    Denied,
    /// The call was cut off, or its outcome is unknown.
    Interrupted,
    /// The call ran out of time.
    Timeout,
}

/// The part that was cut from a tool's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Truncated {
    /// Bytes of the whole output.
    pub bytes: u64,
    /// Lines of the whole output.
    pub lines: u64,
    /// The blob that holds the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<String>,
}

/// The result of a tool call: the text for the model, and the text for people if it differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ToolOutcome {
    /// How it ended.
    pub status: ToolStatus,
    /// Set after a crash: the call had started, and its effect is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outcome_unknown: bool,
    /// Plain text for the model.
    pub llm_text: String,
    /// Text for people, when it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// Structured facts: exit code, diff statistics, hashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Images and other media (blob names and media types).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Value>,
    /// What `llm_text` leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

impl ToolOutcome {
    /// An outcome with only a status and a text for the model.
    #[must_use]
    pub fn text(status: ToolStatus, llm_text: impl Into<String>) -> Self {
        Self {
            status,
            outcome_unknown: false,
            llm_text: llm_text.into(),
            display: None,
            details: None,
            media: Vec::new(),
            truncated: None,
            duration_ms: 0,
        }
    }
}

impl ToolOutcome {
    /// Adds a stable code for the cause of the failure.
    #[must_use]
    pub fn coded(mut self, code: &str) -> Self {
        self.details = Some(serde_json::json!({ "code": code }));
        self
    }
}

/// One possible answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Choice {
    /// The value to send back.
    pub id: String,
    /// The text that people read.
    pub label: String,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It finished.
    EndTurn,
    /// It wants to call tools.
    ToolUse,
    /// It reached its output limit: the answer is truncated, not a success.
    MaxTokens,
    /// It produced a stop sequence.
    StopSequence,
    /// The provider paused a long turn; send the content back to continue.
    PauseTurn,
    /// The provider refused.
    Refusal,
    /// A content filter cut the answer off.
    ContentFilter,
    /// The context window was full: the answer is truncated.
    ContextWindow,
    /// A newer reason; treated as `EndTurn` with a warning.
    #[serde(other)]
    Other,
}

/// What agentd made of an answer with calls that are not as they should be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reading {
    /// The repairs, one text per call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repaired: Vec<String>,
    /// A call in its text that was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmade: Option<UnmadeCall>,
}

impl Reading {
    /// Whether there is nothing to say about the answer.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.repaired.is_empty() && self.unmade.is_none()
    }
}

/// A call in the text of an answer that was not made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UnmadeCall {
    /// The kind of the problem.
    pub kind: Unmade,
    /// What is wrong with it, and where.
    pub problem: String,
}

/// Why a call in a text was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unmade {
    /// It cannot be read without guessing.
    Broken,
    /// The output limit cut it off.
    Cut,
    /// It may be an example.
    #[serde(other)]
    Unclear,
}

/// Error classes of a model failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The credential hit its rate limit; waiting helps.
    RateLimited,
    /// The provider has no capacity; waiting helps.
    Overloaded,
    /// A connection error, a timeout or a broken stream; a retry helps.
    Transient,
    /// Out of money or quota; a person must act.
    QuotaExhausted,
    /// The credential is wrong; a person must act.
    Auth,
    /// The conversation is too long.
    ContextOverflow,
    /// The provider's policy blocked it.
    ContentFilter,
    /// The request is wrong; a retry does not help.
    InvalidRequest,
    /// A bug on our side (a panic of the call).
    Internal,
    /// We cancelled it.
    #[serde(other)]
    Cancelled,
}

/// What an error teaches: a different form of the request may succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// The server refuses the thinking level and accepts only these; if empty, the level must be left out.
    Think(Vec<ThinkingLevel>),
    /// The server refuses a part of the request.
    Without(RequestPart),
    /// The server refuses one item of the request; without it, the rest may be accepted.
    Item(RefusedItem),
    /// There is no server of this name, so another attempt rarely helps.
    NoSuchHost,
    /// The size of the window and of the request in tokens, as the server counts them.
    Window {
        /// Tokens of the window.
        tokens: u64,
        /// Tokens of the request.
        sent: Option<u64>,
    },
    /// The model made a tool call that the server could not read. The model is to blame, not the request.
    Miscalled {
        /// The tool, as far as it is known.
        name: String,
        /// The text that the model wrote.
        said: String,
    },
}
