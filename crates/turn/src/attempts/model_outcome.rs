//! The result of a model call: an answer, a failure, or the end of a question outside of the turn.

use agentd_protocol::{
    Advice, Block, CallId, FailureClass, Latency, Reading, SidePurpose, StopReason, Usage,
};

/// A model's whole answer. Tool-use ids are the provider's; the core replaces them with its own.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswer {
    /// The content blocks.
    pub content: Vec<Block>,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// Tokens.
    pub usage: Usage,
    /// US dollars, when the price is known.
    pub cost_usd: Option<f64>,
    /// How long the answer took.
    pub latency: Latency,
    /// The credential that was used.
    pub credential: Option<String>,
    /// Repairs and doubts about its calls.
    pub reading: Reading,
}

/// The end of a question outside of the turn.
#[derive(Debug, Clone, PartialEq)]
pub struct SideEnded {
    /// The call.
    pub call: CallId,
    /// The purpose of the question.
    pub purpose: SidePurpose,
    /// The configured name of the model.
    pub model: String,
    /// The text of the answer, or why there is none.
    pub text: Result<String, String>,
    /// Tokens.
    pub usage: Usage,
    /// US dollars, when the price is known.
    pub cost_usd: Option<f64>,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFailure {
    /// The failure class.
    pub class: FailureClass,
    /// The provider's message, redacted.
    pub message: String,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The wait that the server asked for.
    pub retry_after_ms: Option<u64>,
    /// The credential that was used.
    pub credential: Option<String>,
    /// Another credential of the provider that works now.
    pub other_credential: Option<String>,
    /// Nothing was sent: the model client already knew that no credential is admitted before `retry_after_ms`.
    pub refused: bool,
    /// The facts that the error reveals about the model.
    pub advice: Option<Advice>,
    /// Tokens that the provider counted before the failure, and US dollars when the price is known.
    pub spent: Option<(Usage, Option<f64>)>,
}

impl ModelFailure {
    /// A failure without further details.
    #[must_use]
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            status: None,
            retry_after_ms: None,
            credential: None,
            other_credential: None,
            refused: false,
            advice: None,
            spent: None,
        }
    }
}
