//! The text of the running model call so far, for those who join late.

use agentd_protocol::{CallId, Fragment};

/// Text fragments of one attempt, put together.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    attempt: Option<(CallId, u32)>,
    block: u32,
    in_block: u64,
    text: String,
    full: bool,
}

impl Partial {
    /// Adds a fragment. Another attempt starts over; text beyond the limit is left out.
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
        // A fragment that does not follow on was already seen, or one before it was lost on the way.
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
