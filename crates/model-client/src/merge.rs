//! Merges the pieces of a stream into fewer, larger deltas. Pure.

use agentd_protocol::{CallId, Delta, Fragment};
use agentd_provider::ModelEvent;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// The longest time that a piece waits to be merged with others.
pub(crate) const MERGE_FOR: Duration = Duration::from_millis(40);
/// This many bytes are sent immediately.
const MERGE_BYTES: usize = 2 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    ToolInput,
}

#[derive(Debug)]
struct Piece {
    kind: Kind,
    block: u32,
    text: String,
}

/// The unsent pieces of one attempt.
#[derive(Debug)]
pub(crate) struct Merger {
    call: CallId,
    attempt: u32,
    pieces: VecDeque<Piece>,
    bytes: usize,
    since: Option<Instant>,
    /// The number of bytes sent of each block.
    offsets: BTreeMap<u32, u64>,
}

impl Merger {
    pub(crate) const fn new(call: CallId, attempt: u32) -> Self {
        Self {
            call,
            attempt,
            pieces: VecDeque::new(),
            bytes: 0,
            since: None,
            offsets: BTreeMap::new(),
        }
    }

    /// Adds a piece.
    pub(crate) fn push(&mut self, event: ModelEvent, now: Instant) {
        let (kind, block, text) = match event {
            ModelEvent::TextDelta { block, text } => (Kind::Text, block, text),
            ModelEvent::ThinkingDelta { block, text } => (Kind::Thinking, block, text),
            ModelEvent::ToolInputDelta { block, text } => (Kind::ToolInput, block, text),
            // Skipped: the log has an event with the name of the call as soon as the answer is complete.
            ModelEvent::ToolStart { .. } => return,
        };
        self.bytes += text.len();
        self.since.get_or_insert(now);
        match self.pieces.back_mut() {
            Some(last) if last.kind == kind && last.block == block => last.text.push_str(&text),
            Some(_) | None => self.pieces.push_back(Piece { kind, block, text }),
        }
    }

    /// When the pieces should be sent; `None` if there are none.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + MERGE_FOR)
    }

    /// Whether there is enough to send immediately.
    pub(crate) const fn is_full(&self) -> bool {
        self.bytes >= MERGE_BYTES
    }

    /// Takes the next delta to send.
    pub(crate) fn pop(&mut self) -> Option<Delta> {
        let Some(Piece { kind, block, text }) = self.pieces.pop_front() else {
            self.since = None;
            self.bytes = 0;
            return None;
        };
        let sent = self.offsets.entry(block).or_default();
        let fragment = Fragment {
            call: self.call,
            attempt: self.attempt,
            block,
            offset: *sent,
            text,
        };
        *sent = sent.saturating_add(fragment.text.len() as u64);
        Some(match kind {
            Kind::Text => Delta::Text(fragment),
            Kind::Thinking => Delta::Thinking(fragment),
            Kind::ToolInput => Delta::ToolInput(fragment),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(block: u32, text: &str) -> ModelEvent {
        ModelEvent::TextDelta {
            block,
            text: text.into(),
        }
    }

    fn fragment(block: u32, offset: u64, text: &str) -> Fragment {
        Fragment {
            call: CallId::NIL,
            attempt: 2,
            block,
            offset,
            text: text.into(),
        }
    }

    fn all(merger: &mut Merger) -> Vec<Delta> {
        std::iter::from_fn(|| merger.pop()).collect()
    }

    #[tokio::test]
    async fn pieces_of_one_block_become_one_delta_with_its_offset() {
        let now = Instant::now();
        let mut merger = Merger::new(CallId::NIL, 2);
        merger.push(
            ModelEvent::ThinkingDelta {
                block: 0,
                text: "hm".into(),
            },
            now,
        );
        merger.push(text(1, "Hé"), now);
        merger.push(text(1, "llo"), now + MERGE_FOR);
        assert_eq!(merger.due(), Some(now + MERGE_FOR));
        let first = vec![
            Delta::Thinking(fragment(0, 0, "hm")),
            Delta::Text(fragment(1, 0, "Héllo")),
        ];
        assert_eq!(all(&mut merger), first);
        assert_eq!(merger.due(), None);
        merger.push(text(1, "!"), now);
        merger.push(
            ModelEvent::ToolStart {
                block: 2,
                name: "Ls".into(),
            },
            now,
        );
        merger.push(
            ModelEvent::ToolInputDelta {
                block: 2,
                text: "{}".into(),
            },
            now,
        );
        let second = vec![
            Delta::Text(fragment(1, 6, "!")),
            Delta::ToolInput(fragment(2, 0, "{}")),
        ];
        assert_eq!(all(&mut merger), second);
    }

    #[tokio::test]
    async fn much_text_does_not_wait() {
        let mut merger = Merger::new(CallId::NIL, 1);
        merger.push(text(0, &"x".repeat(MERGE_BYTES - 1)), Instant::now());
        assert!(!merger.is_full());
        merger.push(text(0, "x"), Instant::now());
        assert!(merger.is_full());
        assert_eq!(all(&mut merger).len(), 1);
        assert!(!merger.is_full());
    }
}
