//! Payloads of what models are asked beside the turns.

use crate::ids::CallId;
use crate::limits::Usage;
use serde::{Deserialize, Serialize};

/// What a model was asked for beside the turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SidePurpose {
    /// A title for the session.
    Title,
    /// A few sentences on what was done in the session.
    Summary,
    /// What an input wants.
    Intent,
    /// A summary in place of the beginning of the conversation; only where nobody waited for it in the end: else its
    /// usage is in `context.compacted`.
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

/// `side_call.finished`: a model was asked beside the turns, and this is what it cost. What came of it is an event of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideCallFinished {
    /// The call.
    pub call: CallId,
    /// For what.
    pub purpose: SidePurpose,
    /// The configured name of the model.
    pub model: String,
    /// Tokens, as far as they were told.
    pub usage: Usage,
    /// US dollars, when the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Why nothing came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
