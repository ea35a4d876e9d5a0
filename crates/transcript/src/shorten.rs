//! A conversation that is too long: its beginning becomes a summary, its long tool results are cut.

use crate::summary::Summary;
use crate::transcript::{NOTE_MARK, Transcript};
use crate::{cut, estimate};
use agentd_protocol::{Block, ContextCompacted, ContextTruncated, Message, Role, Seq};
use std::sync::Arc;

/// What stands before a summary.
const INTRODUCTION: &str = "The beginning of this conversation was replaced by this summary:";
/// What a summary says when there is nothing to say.
const NOTHING: &str = "Nothing of importance.";
/// The part of the target that a summary may take is one in so many, and at most so many tokens.
const SUMMARY_SHARE: u64 = 4;
const MAX_SUMMARY_TOKENS: u64 = 8_000;
/// Bytes in a token, in the worst case of the estimate.
const BYTES_PER_TOKEN: u64 = 3;
/// A summary never has less room than this.
const MIN_SUMMARY_BYTES: usize = 400;
/// A compaction that frees less than one in so many tokens is not worth the lost cache.
const MIN_YIELD: u64 = 5;
/// No tool result is cut to less.
const MIN_RESULT_BYTES: usize = 2_000;

impl Transcript {
    /// How the beginning of the conversation could become a summary, so that all of it has about `target_tokens`: the
    /// last `keep_recent_tokens` stay word for word where the target has room for them. `None`: it would not help.
    #[must_use]
    pub fn plan_compaction(&self, keep_recent_tokens: u64, target_tokens: u64) -> Option<ContextCompacted> {
        let sizes: Vec<u64> = self
            .messages
            .iter()
            .map(|message| estimate::of_blocks(&message.content))
            .collect();
        let beside = self.tokens.saturating_sub(sizes.iter().sum());
        let for_summary = (target_tokens / SUMMARY_SHARE).min(MAX_SUMMARY_TOKENS);
        let room = target_tokens.saturating_sub(beside).saturating_sub(for_summary);
        let end = self.end_of_old(&sizes, keep_recent_tokens.min(room))?;
        let old = self.messages.get(..end)?;
        let summary = self.summarise(old, for_summary)?;
        let tokens_after = self.tokens_with(&sizes, end, &summary);
        let freed = self.tokens.saturating_sub(tokens_after);
        if freed == 0 || freed < self.tokens / MIN_YIELD {
            return None;
        }
        Some(ContextCompacted {
            from_seq: 1,
            to_seq: *self.seqs.get(end.checked_sub(1)?)?,
            summary,
            tokens_before: self.tokens,
            tokens_after,
        })
    }

    /// How long tool results could be cut, so that all of the conversation has about `target_tokens`: each keeps as
    /// much as fits, but at least 2,000 bytes. `None`: it fits already, or nothing would become shorter.
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
        let mut after = self.clone();
        let results = after.truncate(low);
        (results > 0 && after.tokens < self.tokens).then_some(ContextTruncated {
            max_result_bytes: low as u64,
            results,
            tokens_before: self.tokens,
            tokens_after: after.tokens,
        })
    }

    /// Puts a summary in the place of all messages up to a seq.
    pub(crate) fn compact(&mut self, to_seq: Seq, summary: &str) {
        let mut end = self.seqs.partition_point(|seq| *seq <= to_seq);
        while end > 0 && !self.may_part_at(end) {
            end -= 1;
        }
        if end == 0 {
            return;
        }
        let sizes: Vec<u64> = self
            .messages
            .iter()
            .map(|message| estimate::of_blocks(&message.content))
            .collect();
        self.tokens = self.tokens_with(&sizes, end, summary);
        self.messages.splice(..end, [Arc::new(summary_message(summary))]);
        self.seqs.splice(..end, [to_seq]);
        self.summary = Some(summary.to_owned());
        self.generation = self.generation.saturating_add(1);
    }

    /// Cuts the sealed tool results that are longer; says how many.
    pub(crate) fn truncate(&mut self, max_bytes: usize) -> u32 {
        let total = self.sealed_tokens();
        let mut results: u32 = 0;
        let mut freed: u64 = 0;
        for message in &mut self.messages {
            if !message.content.iter().any(|block| is_longer(block, max_bytes)) {
                continue;
            }
            for block in &mut Arc::make_mut(message).content {
                let Block::ToolResult { content, .. } = block else {
                    continue;
                };
                let Some(cut) = cut::head_and_tail(content, max_bytes) else {
                    continue;
                };
                let (before, after) = (
                    estimate::estimate_tokens(content),
                    estimate::estimate_tokens(&cut),
                );
                freed = freed.saturating_add(before.saturating_sub(after));
                results = results.saturating_add(1);
                *content = cut;
            }
        }
        if results > 0 {
            self.tokens = self.tokens.saturating_sub(measured(freed, self.tokens, total));
            self.generation = self.generation.saturating_add(1);
        }
        results
    }

    /// Where the old part ends: the rest has at most `keep` tokens, if the last exchange allows it.
    fn end_of_old(&self, sizes: &[u64], keep: u64) -> Option<usize> {
        let mut end = None;
        let mut kept: u64 = 0;
        for (at, size) in sizes.iter().enumerate().skip(1).rev() {
            kept = kept.saturating_add(*size);
            if kept > keep && end.is_some() {
                break;
            }
            if self.may_part_at(at) {
                end = Some(at);
            }
        }
        // A summary of a summary alone gains nothing.
        end.filter(|end| *end > 1 || self.summary.is_none())
    }

    /// Between these two messages no call is separated from its result (I3).
    fn may_part_at(&self, at: usize) -> bool {
        match self.messages.get(at) {
            Some(next) => !next
                .content
                .iter()
                .any(|block| matches!(block, Block::ToolResult { .. })),
            None => self.step.is_empty(),
        }
    }

    fn summarise(&self, old: &[Arc<Message>], tokens: u64) -> Option<String> {
        let bytes = usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).ok()?;
        let mut summary = self.summary.as_deref().map(Summary::read).unwrap_or_default();
        let new = old.iter().skip(usize::from(self.summary.is_some()));
        summary.add(new.map(Arc::as_ref));
        let text = summary.write(bytes.max(MIN_SUMMARY_BYTES));
        Some(if text.is_empty() { NOTHING.to_owned() } else { text })
    }

    /// The size of the conversation with a summary instead of its first `end` messages.
    fn tokens_with(&self, sizes: &[u64], end: usize, summary: &str) -> u64 {
        let total: u64 = sizes.iter().sum();
        let removed: u64 = sizes.iter().take(end).sum();
        let added = estimate::of_blocks(&summary_message(summary).content);
        self.tokens
            .saturating_sub(measured(removed, self.tokens, total))
            .saturating_add(measured(added, self.tokens, total))
    }

    fn sealed_tokens(&self) -> u64 {
        self.messages
            .iter()
            .map(|message| estimate::of_blocks(&message.content))
            .sum()
    }

    fn results(&self) -> impl Iterator<Item = &str> {
        self.messages
            .iter()
            .flat_map(|message| &message.content)
            .filter_map(|block| match block {
                Block::ToolResult { content, .. } => Some(content.as_str()),
                _ => None,
            })
    }
}

/// Our estimate of a part, in the measure of the whole: where the provider counted fewer tokens than we would, the part
/// has fewer, too.
fn measured(part: u64, counted: u64, estimated: u64) -> u64 {
    if counted >= estimated {
        return part;
    }
    let scaled = u128::from(part).saturating_mul(u128::from(counted)) / u128::from(estimated.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn summary_message(summary: &str) -> Message {
    Message {
        role: Role::User,
        content: vec![Block::text(format!("{NOTE_MARK}{INTRODUCTION}\n\n{summary}"))],
    }
}

fn is_longer(block: &Block, max_bytes: usize) -> bool {
    matches!(block, Block::ToolResult { content, .. } if content.len() > max_bytes)
}
