//! What comes back from a model: an answer, a failure, the end of a question beside the turn.

use agentd_protocol::{Advice, Block, CallId, FailureClass, Latency, SidePurpose, StopReason, Usage};

/// A model's whole answer. Tool-use ids are the provider's; the core replaces them by ours.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswer {
    /// The content blocks.
    pub content: Vec<Block>,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// Tokens.
    pub usage: Usage,
    /// US dollars, when the price is known.
    pub cost_usd: Option<f64>,
    /// How long it took.
    pub latency: Latency,
    /// The credential that was used.
    pub credential: Option<String>,
}

/// How a question beside the turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct SideEnded {
    /// The call.
    pub call: CallId,
    /// For what.
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
    /// The class.
    pub class: FailureClass,
    /// What the provider said, redacted.
    pub message: String,
    /// HTTP status.
    pub status: Option<u16>,
    /// The server's wish.
    pub retry_after_ms: Option<u64>,
    /// The credential that was used.
    pub credential: Option<String>,
    /// Another credential of the provider that is well now.
    pub other_credential: Option<String>,
    /// Nothing was sent: the model client knows already that no credential is admitted before `retry_after_ms`.
    pub refused: bool,
    /// What the error teaches about the model.
    pub advice: Option<Advice>,
    /// Tokens that the provider counted before it failed, and US dollars when the price is known.
    pub spent: Option<(Usage, Option<f64>)>,
}

impl ModelFailure {
    /// A failure of which nothing more is known.
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
