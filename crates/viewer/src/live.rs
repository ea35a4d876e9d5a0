//! The text of a streaming model call: printed as it arrives, completed when the answer is durable.

use agentd_protocol::{Block, CallId, Fragment};
use std::collections::BTreeMap;

/// The printed text of the running model call.
#[derive(Debug, Default)]
pub struct LiveText {
    call: Option<(CallId, u32)>,
    printed: String,
    blocks: BTreeMap<u32, usize>,
    /// Pieces were missed: nothing more is printed until the whole answer arrives.
    gap: bool,
}

/// Pieces of an answer bypass the log and can overtake it. Those that arrive before their call's own event wait here,
/// so that a tool's result is shown before the model's text about it.
#[derive(Debug, Default)]
pub struct Early {
    started: Option<(CallId, u32)>,
    waiting: Vec<Fragment>,
    bytes: usize,
}

/// Pieces beyond this size are not kept; their text is printed with the whole answer.
const EARLY_BYTES: usize = 256 << 10;

impl Early {
    /// Returns the piece if its call has begun in the log, or if no call is known to have begun.
    pub fn admit(&mut self, fragment: &Fragment) -> Option<Fragment> {
        if self
            .started
            .is_none_or(|started| started == (fragment.call, fragment.attempt))
        {
            return Some(fragment.clone());
        }
        self.bytes += fragment.text.len();
        if self.bytes <= EARLY_BYTES {
            self.waiting.push(fragment.clone());
        }
        None
    }

    /// Records that a call has begun in the log; returns its pieces that came too early.
    pub fn started(&mut self, call: CallId, attempt: u32) -> Vec<Fragment> {
        self.started = Some((call, attempt));
        self.bytes = 0;
        let mut waited = std::mem::take(&mut self.waiting);
        waited.retain(|fragment| (fragment.call, fragment.attempt) == (call, attempt));
        waited
    }
}

/// The text to print when the answer is complete.
#[derive(Debug, PartialEq, Eq)]
pub enum Rest {
    /// Append this to what was printed (it may be empty).
    Behind(String),
    /// The answer does not begin with what was printed; print this whole answer instead.
    Instead(String),
}

impl LiveText {
    /// Whether printed text is not yet completed by an answer.
    pub fn open(&self) -> bool {
        !self.printed.is_empty()
    }

    /// The text so far of a call that was already running when the viewer attached.
    pub fn partial(&mut self, text: &str) -> String {
        let Some(more) = text.strip_prefix(self.printed.as_str()) else {
            return String::new();
        };
        let more = more.to_owned();
        text.clone_into(&mut self.printed);
        self.blocks.clear();
        self.gap = false;
        more
    }

    /// Takes the next piece; returns the part of it to print.
    pub fn fragment(&mut self, fragment: &Fragment) -> String {
        let call = (fragment.call, fragment.attempt);
        if self.call != Some(call) {
            // Before the call is known, only a partial text can have been printed.
            if self.call.is_some() || self.printed.is_empty() {
                self.reset();
            }
            self.call = Some(call);
        }
        let carried = if self.blocks.is_empty() {
            self.printed.len()
        } else {
            0
        };
        let expected = *self.blocks.get(&fragment.block).unwrap_or(&carried);
        let offset = usize::try_from(fragment.offset).unwrap_or(usize::MAX);
        if self.gap || offset > expected {
            self.gap = true;
            return String::new();
        }
        let text = fragment.text.get(expected - offset..).unwrap_or_default();
        let end = expected.max(offset.saturating_add(fragment.text.len()));
        self.blocks.insert(fragment.block, end);
        self.printed.push_str(text);
        text.to_owned()
    }

    /// The viewer missed some pieces.
    pub fn lagged(&mut self) {
        self.gap = true;
    }

    /// The answer is durable: returns what is left to print.
    pub fn finish(&mut self, content: &[Block]) -> Rest {
        let whole = text_of(content);
        let rest = match whole.strip_prefix(self.printed.as_str()) {
            Some(rest) => Rest::Behind(rest.to_owned()),
            None => Rest::Instead(whole),
        };
        self.reset();
        rest
    }

    /// The call was cancelled; the log keeps this part of its text.
    pub fn cancelled(&mut self, kept: &str) -> Rest {
        if self.printed.starts_with(kept) {
            self.reset();
            return Rest::Behind(String::new());
        }
        self.finish(&[Block::text(kept)])
    }

    /// The attempt ended without an answer. Returns whether text was printed.
    pub fn drop_attempt(&mut self) -> bool {
        let open = self.open();
        self.reset();
        open
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

/// The text blocks of a message, concatenated.
pub fn text_of(content: &[Block]) -> String {
    content
        .iter()
        .filter_map(|block| {
            if let Block::Text { text } = block {
                Some(text.as_str())
            } else {
                None
            }
        })
        .collect()
}

/// The readable reasoning of a message.
pub fn thoughts_of(content: &[Block]) -> String {
    let thoughts = content.iter().filter_map(|block| match block {
        Block::Thinking { text, .. } => Some(text.trim()).filter(|text| !text.is_empty()),
        Block::Text { .. }
        | Block::Image { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Unknown => None,
    });
    thoughts.collect::<Vec<_>>().join("\n")
}
