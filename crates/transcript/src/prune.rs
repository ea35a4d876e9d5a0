//! Clears old tool results, leaving a note in their place, and cuts long ones before or after they are sent.

use crate::shorten::measured;
use crate::transcript::Transcript;
use crate::{cut, estimate};
use agentd_protocol::{Block, ContextPruned, ContextTruncated, Message, Price, Seq};
use std::sync::Arc;

/// The replacement for an old result.
pub(crate) const CLEARED: &str =
    "[agentd] This old tool result was cleared to make room. Call the tool again if it is needed.";
/// No tool result is cut to fewer bytes.
const MIN_RESULT_BYTES: usize = 2_000;

/// Percent of the line that a pruning above it may leave.
const LEAVES_PERCENT: u64 = 75;

/// Whether to prune. Above the line, the alternative is a summary: a pruning that leaves little room would only void the
/// cache that the summary reads, and clear what it should tell. Below the line, it has to pay.
#[must_use]
pub fn pruning_helps(plan: &ContextPruned, line: u64, further_steps: u64, price: Option<Price>) -> bool {
    if plan.tokens_before > line {
        plan.tokens_after <= line.saturating_mul(LEAVES_PERCENT) / 100
    } else {
        pruning_pays(plan, further_steps, price)
    }
}

/// Whether a pruning costs less than it saves. It breaks the prefix, so what remains is written to the cache again
/// instead of being read; then each further step reads `freed` tokens less.
#[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
fn pruning_pays(plan: &ContextPruned, further_steps: u64, price: Option<Price>) -> bool {
    // A local server, which has no price, pays with time in the same ratios.
    let price = price.filter(|price| price.input > 0.0).unwrap_or(Price::RATIOS);
    let read = if price.cache_read > 0.0 {
        price.cache_read
    } else {
        price.input
    };
    let write = price.cache_write.max(price.input);
    let freed = plan.tokens_before.saturating_sub(plan.tokens_after);
    let saved = freed as f64 * read * further_steps as f64;
    saved > plan.tokens_after as f64 * (write - read)
}

impl Transcript {
    /// Which old tool results to clear: the newest `protect_tokens` of results stay, and at least `min_tokens` must be
    /// freed to justify losing the provider's prompt cache. Depends only on the conversation.
    #[must_use]
    pub fn plan_pruning(&self, protect_tokens: u64, min_tokens: u64) -> Option<ContextPruned> {
        let mut newer: u64 = self.step.blocks().map(estimate::of_block).sum();
        let mut freed: u64 = 0;
        let mut results: u32 = 0;
        let mut to_seq = None;
        for (message, seq) in self.messages.iter().zip(&self.seqs).rev() {
            let tokens: u64 = found(message).map(estimate::estimate_tokens).sum();
            if newer >= protect_tokens {
                for content in found(message).filter(|content| clearable(content)) {
                    freed = freed.saturating_add(gain(content));
                    results = results.saturating_add(1);
                    to_seq.get_or_insert(*seq);
                }
            }
            newer = newer.saturating_add(tokens);
        }
        let freed = measured(freed, self.tokens, self.sealed_tokens());
        (freed > 0 && freed >= min_tokens).then_some(ContextPruned {
            to_seq: to_seq?,
            results,
            tokens_before: self.tokens,
            tokens_after: self.tokens.saturating_sub(freed),
        })
    }

    /// Clears the tool results up to a seq.
    pub(crate) fn prune(&mut self, to_seq: Seq) {
        let total = self.sealed_tokens();
        let end = self.seqs.partition_point(|seq| *seq <= to_seq);
        let mut freed: u64 = 0;
        for message in self.messages.iter_mut().take(end) {
            if !found(message).any(clearable) {
                continue;
            }
            for block in &mut Arc::make_mut(message).content {
                if let Block::ToolResult { content, .. } = block
                    && clearable(content)
                {
                    freed = freed.saturating_add(gain(content));
                    CLEARED.clone_into(content);
                }
            }
        }
        if freed > 0 {
            self.changed(measured(freed, self.tokens, total));
        }
    }

    /// The size to which long tool results must be cut so that the conversation has about `target_tokens`: the largest
    /// that fits, but at least 2,000 bytes. `None`: it fits already, or nothing would become shorter.
    #[must_use]
    pub fn plan_truncation(&self, target_tokens: u64) -> Option<ContextTruncated> {
        let long: Vec<(usize, u64)> = self
            .results()
            .filter(|content| content.len() > MIN_RESULT_BYTES)
            .map(|content| (content.len(), estimate::estimate_tokens(content)))
            .collect();
        let fits = |max: usize| {
            let freed = long.iter().map(|(bytes, tokens)| {
                let over = bytes.saturating_sub(max) as u64;
                tokens.saturating_mul(over) / (*bytes as u64).max(1)
            });
            self.tokens.saturating_sub(freed.sum()) <= target_tokens
        };
        if self.tokens <= target_tokens {
            return None;
        }
        let longest = long.iter().map(|(bytes, _)| *bytes).max()?;
        let (mut low, mut high) = (MIN_RESULT_BYTES, longest.saturating_sub(1).max(MIN_RESULT_BYTES));
        while low < high {
            let middle = low.midpoint(high).saturating_add((high - low) % 2);
            if fits(middle) {
                low = middle;
            } else {
                high = middle.saturating_sub(1);
            }
        }
        self.plan_cap(low)
    }

    /// Limits each tool result to `max_bytes`, but at least 2,000. `None`: none is longer.
    #[must_use]
    pub fn plan_cap(&self, max_bytes: usize) -> Option<ContextTruncated> {
        let max = max_bytes.max(MIN_RESULT_BYTES);
        let mut after = self.clone();
        let results = after.truncate(max);
        (results > 0 && after.tokens < self.tokens).then_some(ContextTruncated {
            max_result_bytes: max as u64,
            results,
            tokens_before: self.tokens,
            tokens_after: after.tokens,
        })
    }

    /// Cuts the longer tool results; returns how many.
    pub(crate) fn truncate(&mut self, max_bytes: usize) -> u32 {
        let total = self.sealed_tokens();
        let (mut results, mut freed) = (0_u32, 0_u64);
        for message in &mut self.messages {
            if !found(message).any(|content| content.len() > max_bytes) {
                continue;
            }
            for block in &mut Arc::make_mut(message).content {
                if let Some(gain) = shorten(block, max_bytes) {
                    freed = freed.saturating_add(gain);
                    results = results.saturating_add(1);
                }
            }
        }
        if results > 0 {
            self.changed(measured(freed, self.tokens, total));
        }
        // Results that have not been sent yet: cutting them does not change a sealed message.
        let mut fresh: u64 = 0;
        for block in self.step.blocks_mut() {
            if let Some(gain) = shorten(block, max_bytes) {
                fresh = fresh.saturating_add(gain);
                results = results.saturating_add(1);
            }
        }
        self.tokens = self.tokens.saturating_sub(self.rate.of(fresh));
        results
    }

    /// Records that sealed messages have changed, which freed `freed` tokens.
    pub(crate) fn changed(&mut self, freed: u64) {
        self.tokens = self.tokens.saturating_sub(freed);
        self.generation = self.generation.saturating_add(1);
        self.rate.lose_base();
    }

    /// The longest tool result that has not been sent yet, in bytes.
    #[must_use]
    pub fn longest_new_result(&self) -> usize {
        let lengths = self.step.blocks().map(|block| match block {
            Block::ToolResult { content, .. } => content.len(),
            _ => 0,
        });
        lengths.max().unwrap_or(0)
    }

    pub(crate) fn sealed_tokens(&self) -> u64 {
        self.messages
            .iter()
            .map(|message| estimate::of_blocks(&message.content))
            .sum()
    }

    fn results(&self) -> impl Iterator<Item = &str> {
        let sealed = self.messages.iter().flat_map(|message| &message.content);
        sealed.chain(self.step.blocks()).filter_map(result)
    }
}

fn result(block: &Block) -> Option<&str> {
    match block {
        Block::ToolResult { content, .. } => Some(content.as_str()),
        _ => None,
    }
}

fn found(message: &Message) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(result)
}

/// Whether clearing it would gain anything: short results, which include cleared ones, are left alone.
fn clearable(content: &str) -> bool {
    content.len() > CLEARED.len() * 2
}

fn gain(content: &str) -> u64 {
    estimate::estimate_tokens(content).saturating_sub(estimate::estimate_tokens(CLEARED))
}

fn shorten(block: &mut Block, max_bytes: usize) -> Option<u64> {
    let Block::ToolResult { content, .. } = block else {
        return None;
    };
    let cut = cut::head_and_tail(content, max_bytes)?;
    let before = estimate::estimate_tokens(content);
    let gain = before.saturating_sub(estimate::estimate_tokens(&cut));
    *content = cut;
    Some(gain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prune_pays_once_its_savings_exceed_its_cost() {
        let plan = |before, after| ContextPruned {
            to_seq: 1,
            results: 1,
            tokens_before: before,
            tokens_after: after,
        };
        let price = Price {
            input: 3.0,
            output: 15.0,
            cache_read: 0.3,
            cache_write: 3.75,
            cache_write_1h: 0.0,
        };
        // 40,000 tokens are written again for 3.45 more each; 60,000 are not read for 0.30 at each step.
        for price in [Some(price), None] {
            assert!(!pruning_pays(&plan(100_000, 40_000), 7, price));
            assert!(pruning_pays(&plan(100_000, 40_000), 8, price));
            assert!(!pruning_pays(&plan(100_000, 80_000), 45, price));
        }
        // Without a cache each step pays in full, so less is better at once.
        let uncached = Price {
            cache_read: 0.0,
            cache_write: 0.0,
            cache_write_1h: 0.0,
            ..price
        };
        assert!(pruning_pays(&plan(100_000, 80_000), 1, Some(uncached)));
        assert!(!pruning_pays(&plan(100_000, 80_000), 0, Some(price)));
    }

    #[test]
    fn above_the_limit_a_prune_must_free_enough_or_a_summary_follows() {
        let helps = |after| {
            let plan = ContextPruned {
                to_seq: 1,
                results: 1,
                tokens_before: 100_001,
                tokens_after: after,
            };
            pruning_helps(&plan, 100_000, 0, None)
        };
        assert!(helps(75_000));
        assert!(!helps(75_001));
    }
}
