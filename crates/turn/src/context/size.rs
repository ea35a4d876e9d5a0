//! The size of the next request.

use crate::draft::Draft;
use crate::input::Scene;
use agentd_protocol::{Block, EventBody, InputId};

/// Typical bytes per token.
const BYTES_PER_TOKEN_LIKELY: u64 = 4;
/// Approximate tokens of an image, as the transcript estimates them.
const IMAGE_TOKENS: u64 = 1_200;

/// The size of the conversation, in addition to its token estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Tokens of queued inputs that may join.
    pub waiting_tokens: u64,
    /// Tokens of the system prompt and the tools, until a provider has counted them.
    pub frame_tokens: u64,
    /// Sealed messages.
    pub messages: u64,
    /// Bytes of the longest tool result that has not been sent yet.
    pub longest_new_result: u64,
}

impl Scene<'_> {
    /// Adds what this decision itself puts into the conversation: the scene was taken before it.
    pub(crate) fn grow(&mut self, body: &EventBody) {
        let text = match body {
            EventBody::ToolFinished(finished) => {
                let bytes = finished.outcome.llm_text.len() as u64;
                self.sizes.longest_new_result = self.sizes.longest_new_result.max(bytes);
                bytes
            }
            EventBody::NoteInjected(note) => note.text.len() as u64,
            EventBody::ModelFinished(finished) => {
                let usage = &finished.usage;
                let prompt = usage.input.saturating_add(usage.cache_read);
                let prompt = prompt.saturating_add(usage.cache_write);
                if prompt > 0 {
                    self.input_tokens_estimate = prompt.saturating_add(usage.output);
                }
                return;
            }
            EventBody::InputAccepted(input) => {
                let waiting = tokens_of(&input.content);
                self.sizes.waiting_tokens = self.sizes.waiting_tokens.saturating_add(waiting);
                return;
            }
            EventBody::ModelStarted(started) => {
                self.sizes.longest_new_result = 0;
                if !started.inputs.is_empty() {
                    let joined = std::mem::take(&mut self.sizes.waiting_tokens);
                    self.input_tokens_estimate = self.input_tokens_estimate.saturating_add(joined);
                }
                return;
            }
            _ => return,
        };
        let tokens = text.div_ceil(BYTES_PER_TOKEN_LIKELY);
        self.input_tokens_estimate = self.input_tokens_estimate.saturating_add(tokens);
    }
}

/// The estimated tokens of the next request, including all inputs that wait.
pub(crate) fn tokens(draft: &Draft<'_, '_>) -> u64 {
    let sizes = draft.scene.sizes;
    draft
        .scene
        .input_tokens_estimate
        .saturating_add(sizes.waiting_tokens)
        .saturating_add(sizes.frame_tokens)
}

/// The estimated tokens of a request that these inputs join.
pub(crate) fn size_with(draft: &Draft<'_, '_>, inputs: &[InputId]) -> u64 {
    match inputs {
        [] => tokens(draft).saturating_sub(draft.scene.sizes.waiting_tokens),
        _ => tokens(draft),
    }
}

/// The approximate tokens of an input.
fn tokens_of(content: &[Block]) -> u64 {
    let tokens = content.iter().map(|block| match block {
        Block::Text { text } => (text.len() as u64).div_ceil(BYTES_PER_TOKEN_LIKELY),
        Block::Image { .. } => IMAGE_TOKENS,
        Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Unknown => 0,
    });
    tokens.sum()
}
