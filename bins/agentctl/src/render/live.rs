//! The text of a streaming model call: printed as it comes, completed when the answer is durable.

use agentd_protocol::{Block, CallId, Fragment};
use std::collections::BTreeMap;

/// What has been printed of the running model call.
#[derive(Debug, Default)]
pub(crate) struct LiveText {
    call: Option<(CallId, u32)>,
    printed: String,
    blocks: BTreeMap<u32, usize>,
    /// Pieces were missed: nothing more is printed until the whole answer is there.
    gap: bool,
}

/// Pieces of an answer travel off the log and can overtake it: what came before its call's own event waits here, so that
/// the result of a tool is shown before the words about it.
#[derive(Debug, Default)]
pub(crate) struct Early {
    started: Option<(CallId, u32)>,
    waiting: Vec<Fragment>,
    bytes: usize,
}

/// More than this does not wait; it is printed with the whole answer.
const EARLY_BYTES: usize = 256 << 10;

impl Early {
    /// The piece, if its call has begun in the log, or none is known to have.
    pub(crate) fn admit(&mut self, fragment: &Fragment) -> Option<Fragment> {
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

    /// The log says that a call begins: its pieces that came too early.
    pub(crate) fn started(&mut self, call: CallId, attempt: u32) -> Vec<Fragment> {
        self.started = Some((call, attempt));
        self.bytes = 0;
        let mut waited = std::mem::take(&mut self.waiting);
        waited.retain(|fragment| (fragment.call, fragment.attempt) == (call, attempt));
        waited
    }
}

/// What to print when the answer is there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// This goes on behind what was printed (it may be empty).
    Behind(String),
    /// What was printed is not how the answer begins; this is the whole answer.
    Instead(String),
}

impl LiveText {
    /// Whether text was printed that no answer has completed yet.
    pub(crate) fn open(&self) -> bool {
        !self.printed.is_empty()
    }

    /// The text so far of a call that was running when the viewer came.
    pub(crate) fn partial(&mut self, text: &str) -> String {
        let Some(more) = text.strip_prefix(self.printed.as_str()) else {
            return String::new();
        };
        let more = more.to_owned();
        text.clone_into(&mut self.printed);
        self.blocks.clear();
        self.gap = false;
        more
    }

    /// The next piece; returns what of it to print.
    pub(crate) fn fragment(&mut self, fragment: &Fragment) -> String {
        let call = (fragment.call, fragment.attempt);
        if self.call != Some(call) {
            // Only a partial text is printed before its call is known.
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

    /// The viewer missed something.
    pub(crate) fn lagged(&mut self) {
        self.gap = true;
    }

    /// The answer is durable: what is left to print of it.
    pub(crate) fn finish(&mut self, content: &[Block]) -> Rest {
        let whole = text_of(content);
        let rest = match whole.strip_prefix(self.printed.as_str()) {
            Some(rest) => Rest::Behind(rest.to_owned()),
            None => Rest::Instead(whole),
        };
        self.reset();
        rest
    }

    /// The call was cancelled; the log keeps this much of it.
    pub(crate) fn cancelled(&mut self, kept: &str) -> Rest {
        if self.printed.starts_with(kept) {
            self.reset();
            return Rest::Behind(String::new());
        }
        self.finish(&[Block::text(kept)])
    }

    /// The attempt is over without an answer. True: text was printed.
    pub(crate) fn drop_attempt(&mut self) -> bool {
        let open = self.open();
        self.reset();
        open
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

/// The text blocks of a message, one after the other.
pub(crate) fn text_of(content: &[Block]) -> String {
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
pub(crate) fn thoughts_of(content: &[Block]) -> String {
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
