//! Payloads of side calls: model calls outside the turns.

use crate::ids::CallId;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};

/// The purpose of a side call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SidePurpose {
    /// A title for the session.
    Title,
    /// A summary of the session's work in a few sentences.
    Summary,
    /// The intent of an input.
    Intent,
    /// A summary to replace the start of the conversation. Only for abandoned ones; the usage of the others is in
    /// `context.compacted`.
    Compaction,
}

impl SidePurpose {
    /// The contract's spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Summary => "summary",
            Self::Intent => "intent",
            Self::Compaction => "compaction",
        }
    }
}

/// `side_call.finished`: the cost of a model call outside the turns. Its effect, if any, is an event of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SideCallFinished {
    /// The call.
    pub call: CallId,
    /// The purpose.
    pub purpose: SidePurpose,
    /// The configured name of the model.
    pub model: String,
    /// Tokens, as far as the provider reported them.
    pub usage: Usage,
    /// US dollars, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Why it had no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
