//! A cheap estimate of the number of tokens, good enough to notice a full window before the provider does.

use agentd_protocol::Block;

/// The estimate for one image, whatever its size.
const IMAGE_TOKENS: u64 = 1_200;
/// The overhead of one block.
const BLOCK_TOKENS: u64 = 4;

/// The estimate for a text: four ASCII bytes, or one and a half other characters, per token.
#[must_use]
pub fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let wide = (text.chars().count() as u64).saturating_sub(ascii);
    ascii.div_ceil(4) + (wide * 2).div_ceil(3)
}

/// The estimate for content blocks.
pub(crate) fn of_blocks(blocks: &[Block]) -> u64 {
    blocks.iter().map(of_block).sum()
}

pub(crate) fn of_block(block: &Block) -> u64 {
    BLOCK_TOKENS
        + match block {
            Block::Text { text } => estimate_tokens(text),
            Block::Image { .. } => IMAGE_TOKENS,
            Block::Thinking { text, raw } => estimate_tokens(raw.as_deref().unwrap_or(text)),
            Block::ToolUse { name, input, .. } => estimate_tokens(name) + estimate_tokens(&input.to_string()),
            Block::ToolResult { content, .. } => estimate_tokens(content),
            Block::Unknown => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_and_chinese_count_differently() {
        assert_eq!(estimate_tokens(""), 0);
        assert_eq!(estimate_tokens("abcdefgh"), 2);
        assert_eq!(estimate_tokens("你好世"), 2);
        assert_eq!(estimate_tokens("ab你好"), 1 + 2);
    }

    #[test]
    fn an_image_costs_the_same_whatever_its_size() {
        let image = |n: usize| Block::Image {
            media_type: "image/png".into(),
            source: agentd_protocol::ImageSource::Data("A".repeat(n)),
        };
        assert_eq!(of_blocks(&[image(1)]), of_blocks(&[image(100_000)]));
    }
}
