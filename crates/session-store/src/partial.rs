//! The text so far of the running model call, for viewers that attach during the call.

use agentd_protocol::{CallId, Fragment};

/// The accumulated text fragments of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    attempt: Option<(CallId, u32)>,
    block: u32,
    in_block: u64,
    text: String,
    full: bool,
}

impl Partial {
    /// Adds a fragment. A new attempt starts over. Text beyond the limit is dropped.
    pub(crate) fn add(&mut self, fragment: &Fragment, max_bytes: usize) {
        let attempt = Some((fragment.call, fragment.attempt));
        if self.attempt != attempt {
            *self = Self {
                attempt,
                block: fragment.block,
                ..Self::default()
            };
        }
        if self.block != fragment.block {
            (self.block, self.in_block) = (fragment.block, 0);
        }
        // A fragment at another offset was already seen, or an earlier one was lost.
        if fragment.offset != self.in_block {
            return;
        }
        self.in_block = self.in_block.saturating_add(fragment.text.len() as u64);
        self.full |= self.text.len().saturating_add(fragment.text.len()) > max_bytes;
        if !self.full {
            self.text.push_str(&fragment.text);
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn text(&self) -> Option<String> {
        (!self.text.is_empty()).then(|| self.text.clone())
    }
}
