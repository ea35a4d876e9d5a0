//! What comes back from a model: pieces while it talks, one answer at the end.

use agentd_protocol::{Block, StopReason, Usage};

/// A piece of a streaming answer. `block` numbers the blocks of the answer in order of appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelEvent {
    /// Text for people.
    TextDelta {
        /// Which block.
        block: u32,
        /// The piece.
        text: String,
    },
    /// Reasoning.
    ThinkingDelta {
        /// Which block.
        block: u32,
        /// The piece.
        text: String,
    },
    /// A tool call begins.
    ToolStart {
        /// Which block.
        block: u32,
        /// The tool's name as the model said it.
        name: String,
    },
    /// Arguments of a tool call, as they stream: pieces of JSON.
    ToolInputDelta {
        /// Which block.
        block: u32,
        /// The piece.
        text: String,
    },
}

impl ModelEvent {
    /// Which block of the answer it is a piece of.
    #[must_use]
    pub const fn block(&self) -> u32 {
        match self {
            Self::TextDelta { block, .. }
            | Self::ThinkingDelta { block, .. }
            | Self::ToolStart { block, .. }
            | Self::ToolInputDelta { block, .. } => *block,
        }
    }
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    /// Its blocks. Tool call ids are the provider's, or made up where it gave none; the turn replaces them by ours.
    pub content: Vec<Block>,
    /// Why the model stopped. A tool call in an answer that stopped at `MaxTokens` may be cut off.
    pub stop_reason: StopReason,
    /// Tokens.
    pub usage: Usage,
    /// What it cost, when the price is known.
    pub cost_usd: Option<f64>,
    /// The model that the provider says answered.
    pub model: String,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
}
