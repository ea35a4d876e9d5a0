//! A limit on the number of messages, for models that lose the thread in long conversations.

use crate::estimate;
use crate::shorten::measured;
use crate::transcript::{NOTE_MARK, Transcript};
use agentd_protocol::{Block, ContextTrimmed, Seq};
use std::sync::Arc;

impl Transcript {
    /// Which messages after the task to drop so that the next request has at most `max` messages. Calls and results
    /// stay together, and a third more than necessary is dropped, so that the prompt cache holds for a while.
    #[must_use]
    pub fn plan_trimming(&self, max: usize) -> Option<ContextTrimmed> {
        let all = self.messages.len();
        if max == 0 || all < max {
            return None;
        }
        let keep = max.saturating_sub(max / 3).saturating_sub(2);
        let from = all.saturating_sub(keep).max(1);
        let ahead = (from..=all).find(|at| self.may_part_at(*at));
        let end = ahead.or_else(|| (2..from).rev().find(|at| self.may_part_at(*at)))?;
        let messages = end.saturating_sub(1);
        if messages == 0 {
            return None;
        }
        let mut after = self.clone();
        let to_seq = *self.seqs.get(messages)?;
        after.trim(to_seq);
        Some(ContextTrimmed {
            to_seq,
            messages: u32::try_from(messages).unwrap_or(u32::MAX),
            tokens_before: self.tokens,
            tokens_after: after.tokens,
        })
    }

    /// Drops the messages after the first one up to a seq, and notes this in the first one.
    pub(crate) fn trim(&mut self, to_seq: Seq) {
        let mut end = self.seqs.partition_point(|seq| *seq <= to_seq);
        while end > 1 && !self.may_part_at(end) {
            end -= 1;
        }
        if end <= 1 {
            return;
        }
        let total = self.sealed_tokens();
        let gone = self.messages.drain(1..end);
        let freed: u64 = gone.map(|message| estimate::of_blocks(&message.content)).sum();
        self.seqs.drain(1..end);
        self.left_out = self
            .left_out
            .saturating_add(u64::try_from(end).unwrap_or(u64::MAX).saturating_sub(1));
        let note = Block::text(format!(
            "{NOTE_MARK}{} later messages omitted here.",
            self.left_out
        ));
        if let Some(task) = self.messages.first_mut() {
            let task = Arc::make_mut(task);
            if self.noted {
                task.content.pop();
            }
            task.content.push(note);
            self.noted = true;
        }
        self.changed(measured(freed, self.tokens, total));
    }
}
