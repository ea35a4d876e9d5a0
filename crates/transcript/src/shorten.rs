//! Compaction: replaces the beginning of a long conversation with a summary.

use crate::summary::Summary;
use crate::transcript::{NOTE_MARK, Transcript};
use crate::{attach, estimate};
use agentd_protocol::{AttachedFile, Block, ContextCompacted, Message, Role};
use std::sync::Arc;

/// The text before a summary.
const INTRODUCTION: &str = "The beginning of this conversation was replaced by this summary:";
/// The summary when there is nothing to say.
const NOTHING: &str = "Nothing important.";
/// A summary may take 1/`SUMMARY_SHARE` of the target, and at most `MAX_SUMMARY_TOKENS`.
const SUMMARY_SHARE: u64 = 4;
const MAX_SUMMARY_TOKENS: u64 = 8_000;
/// Bytes per token in the estimate's worst case.
const BYTES_PER_TOKEN: u64 = 3;
/// The smallest room for a summary.
const MIN_SUMMARY_BYTES: usize = 400;
/// A compaction that frees less than 1/`MIN_YIELD` of the tokens is not worth the lost cache.
const MIN_YIELD: u64 = 5;
/// Files that are shown again may take 1/`FILES_SHARE` of the target, and at most `MAX_FILES_TOKENS`.
const FILES_SHARE: u64 = 8;
const MAX_FILES_TOKENS: u64 = 12_500;

impl Transcript {
    /// How to replace the beginning with a summary so that the conversation has about `target_tokens`: the last
    /// `keep_recent_tokens` stay verbatim where the target has room for them. `None`: it would not help.
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
        let for_files = (target_tokens / FILES_SHARE).min(MAX_FILES_TOKENS);
        let room = room.saturating_sub(for_files);
        let end = self.end_of_old(&sizes, keep_recent_tokens.min(room))?;
        let old = self.messages.get(..end)?;
        let summary = self.summarise(old, for_summary)?;
        let file_bytes = usize::try_from(for_files.saturating_mul(BYTES_PER_TOKEN)).ok()?;
        let files = self.leaving_files(end, file_bytes);
        let tokens_after = self.tokens_with(&sizes, end, &summary_message(&summary, &files));
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
            files,
            ..ContextCompacted::default()
        })
    }

    /// Replaces all messages up to a seq with a summary.
    pub(crate) fn compact(&mut self, compacted: &ContextCompacted) {
        let to_seq = compacted.to_seq;
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
        let message = summary_message(&compacted.summary, &compacted.files);
        self.tokens = self.tokens_with(&sizes, end, &message);
        self.messages.splice(..end, [Arc::new(message)]);
        self.seqs.splice(..end, [to_seq]);
        self.summary = Some(compacted.summary.clone());
        self.attached.clone_from(&compacted.files);
        (self.left_out, self.noted) = (0, false);
        self.changed(0);
    }

    /// The end of the old part: the rest has at most `keep` tokens, if the last exchange allows it.
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
        // Summarising only a summary gains nothing.
        end.filter(|end| *end > 1 || self.summary.is_none())
    }

    /// Whether the conversation may be split here without separating a call from its result (I3).
    pub(crate) fn may_part_at(&self, at: usize) -> bool {
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

    /// The size of the conversation if a summary replaced its first `end` messages.
    fn tokens_with(&self, sizes: &[u64], end: usize, summary: &Message) -> u64 {
        let total: u64 = sizes.iter().sum();
        let removed: u64 = sizes.iter().take(end).sum();
        let added = estimate::of_blocks(&summary.content);
        self.tokens
            .saturating_sub(measured(removed, self.tokens, total))
            .saturating_add(measured(added, self.tokens, total))
    }
}

/// Scales our estimate of a part to the provider's count of the whole: if the provider counted fewer tokens than we
/// estimated, so does the part.
pub(crate) fn measured(part: u64, counted: u64, estimated: u64) -> u64 {
    if counted >= estimated {
        return part;
    }
    let scaled = u128::from(part).saturating_mul(u128::from(counted)) / u128::from(estimated.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn summary_message(summary: &str, files: &[AttachedFile]) -> Message {
    let text = Block::text(format!("{NOTE_MARK}{INTRODUCTION}\n\n{summary}"));
    Message {
        role: Role::User,
        content: std::iter::once(text)
            .chain(files.iter().map(attach::block))
            .collect(),
    }
}
