//! The tokens of an answer when a budget needs them and the provider does not report them: a missing number must not
//! disable a hard limit.

use crate::draft::Draft;
use crate::input::ModelAnswer;
use agentd_protocol::{Block, Usage, WarningRaised};

/// Approximate bytes of text per token.
const BYTES_PER_TOKEN: u64 = 4;

/// The tokens of an answer, with warnings about the count, issued once per turn. With a token budget, the side that the
/// provider does not count is estimated: some servers count only what the model writes.
pub(crate) fn of(draft: &Draft<'_, '_>, answer: &ModelAnswer) -> (Usage, Vec<WarningRaised>) {
    let budget = draft.durable().budget();
    let (mut usage, mut warnings) = (answer.usage, Vec::new());
    let prompt = usage.input.saturating_add(usage.cache_read);
    let no_input = prompt.saturating_add(usage.cache_write) == 0;
    let written = said(&answer.content).div_ceil(BYTES_PER_TOKEN);
    let no_output = usage.output == 0 && written > 0;
    if budget.tokens > 0 && (no_input || no_output) {
        if no_input {
            let frame = draft.scene.sizes.frame_tokens;
            usage.input = draft.scene.input_tokens_estimate.saturating_add(frame);
        }
        if no_output {
            usage.output = written;
        }
        warnings.push(warning(
            "usage_estimated",
            "the model's server does not count all tokens; the others are estimated for the session's token budget",
        ));
    }
    if budget.usd > 0.0 && answer.cost_usd.is_none() {
        warnings.push(warning(
            "cost_unknown",
            "this model has no price, so the session's money budget does not see what it costs; set its price under [models]",
        ));
    }
    if draft.turn().is_some_and(|turn| turn.steps > 1) {
        warnings.clear();
    }
    (usage, warnings)
}

fn said(content: &[Block]) -> u64 {
    let bytes = content.iter().map(|block| match block {
        Block::Text { text } | Block::Thinking { text, .. } => text.len(),
        Block::ToolUse { input, .. } => input.to_string().len(),
        Block::Image { .. } | Block::ToolResult { .. } | Block::Unknown => 0,
    });
    u64::try_from(bytes.sum::<usize>()).unwrap_or(u64::MAX)
}

fn warning(code: &str, message: &str) -> WarningRaised {
    WarningRaised {
        code: code.to_owned(),
        message: message.to_owned(),
    }
}
