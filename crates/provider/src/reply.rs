//! The output of a model: events while it streams, one reply at the end.

use agentd_protocol::{Block, Reading, StopReason, Usage};

/// An event of a streaming answer. `block` numbers the blocks of the answer in order of appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelEvent {
    /// Visible text.
    TextDelta {
        /// The block's number.
        block: u32,
        /// The new text.
        text: String,
    },
    /// Reasoning.
    ThinkingDelta {
        /// The block's number.
        block: u32,
        /// The new text.
        text: String,
    },
    /// A tool call starts.
    ToolStart {
        /// The block's number.
        block: u32,
        /// The tool's name as the model wrote it.
        name: String,
    },
    /// Arguments of a tool call, streamed as fragments of JSON.
    ToolInputDelta {
        /// The block's number.
        block: u32,
        /// The fragment.
        text: String,
    },
}

impl ModelEvent {
    /// The number of the block that it belongs to.
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
    /// Its blocks. Tool call ids are the provider's, or made up where it gave none; the turn replaces them with ours.
    pub content: Vec<Block>,
    /// Why the model stopped. A tool call in an answer that stopped at `MaxTokens` may be truncated.
    pub stop_reason: StopReason,
    /// The token counts.
    pub usage: Usage,
    /// The cost, if the price is known.
    pub cost_usd: Option<f64>,
    /// The model that answered, according to the provider.
    pub model: String,
    /// The provider's id of the request, for support tickets.
    pub request_id: Option<String>,
    /// What was repaired or doubtful in its calls.
    pub reading: Reading,
}
