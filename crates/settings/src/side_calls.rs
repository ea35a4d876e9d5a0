//! `[side_calls]`: model calls outside a session's conversation.

use serde::{Deserialize, Serialize};

/// The name that stands for the session's own model.
pub(crate) const OWN: &str = "session";

/// `[side_calls]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideCallsConfig {
    /// A name under `[models]`, `session` for the session's own model, empty for none.
    pub model: String,
    /// A title for each unnamed session.
    pub titles: bool,
    /// A summary of each session at the end of each turn.
    pub summaries: bool,
    /// What an input wants, if `loop.intent_gate` is on and its words leave that open.
    pub intents: bool,
    /// The words leave it open below this confidence.
    pub intent_below: f64,
    /// Tokens of one answer.
    pub max_tokens: u32,
    /// Time limit of one side call.
    pub timeout_ms: u64,
}
