//! The vocabulary of model calls and tool calls.

use crate::limits::ThinkingLevel;
use crate::payload_turn::RequestPart;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a tool call does to the world. Adjacent `read` calls run in parallel; any other is a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It did what was asked.
    Ok,
    /// It failed; the text says why.
    Error,
    /// It was not allowed to run.
    Denied,
    /// It was cut off, or its outcome is unknown.
    Interrupted,
    /// It ran out of time.
    Timeout,
}

/// What was left out of a tool's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncated {
    /// Bytes of the whole output.
    pub bytes: u64,
    /// Lines of the whole output.
    pub lines: u64,
    /// The blob that holds the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<String>,
}

/// The result of a tool call: what the model reads, and what people are shown where that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// How it ended.
    pub status: ToolStatus,
    /// After a crash: the call was started, and nobody knows what it did.
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
    /// What was left out of `llm_text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

impl ToolOutcome {
    /// An outcome that is only a status and a text for the model.
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
    /// The same with a stable word for why the call failed.
    #[must_use]
    pub fn coded(mut self, code: &str) -> Self {
        self.details = Some(serde_json::json!({ "code": code }));
        self
    }
}

/// One possible answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What to send back.
    pub id: String,
    /// What people read.
    pub label: String,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It wants tools.
    ToolUse,
    /// It ran into its output limit: truncated, not success.
    MaxTokens,
    /// A stop sequence.
    StopSequence,
    /// The provider paused a long turn; send the content back to go on.
    PauseTurn,
    /// The provider refused.
    Refusal,
    /// A content filter cut it.
    ContentFilter,
    /// The window was full: truncated.
    ContextWindow,
    /// Something newer; treated as `EndTurn` with a warning.
    #[serde(other)]
    Other,
}

/// Error classes of a model failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The credential's rate limit; a wait helps.
    RateLimited,
    /// The provider has no capacity; a wait helps.
    Overloaded,
    /// Connection, time-out, a broken stream; a retry helps.
    Transient,
    /// Out of money or quota; a person helps.
    QuotaExhausted,
    /// The credential is wrong; a person helps.
    Auth,
    /// The conversation is too long.
    ContextOverflow,
    /// The provider's policy.
    ContentFilter,
    /// The request is wrong; a retry does not help.
    InvalidRequest,
    /// A bug on our side (a panic of the call).
    Internal,
    /// We cancelled it.
    #[serde(other)]
    Cancelled,
}

/// What an error teaches: a request that says it differently may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// The thinking level is refused; these are taken, none: it must be left out.
    Think(Vec<ThinkingLevel>),
    /// A part of the request is refused.
    Without(RequestPart),
    /// The window, and how many tokens the request had, as the server counts.
    Window {
        /// Tokens of the window.
        tokens: u64,
        /// Tokens of the request.
        sent: Option<u64>,
    },
    /// The model made a tool call that the server could not read. The model is to blame, not the request.
    Miscalled {
        /// The tool, as far as it can be told.
        name: String,
        /// What the model wrote.
        said: String,
    },
}
