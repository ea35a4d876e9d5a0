//! Reasoning within the text of a raw completion: between two marks at its beginning.

use crate::reply::ModelEvent;
use agentd_protocol::Block;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The text so far may be the start of the opening mark.
    #[default]
    Start,
    Thinking,
    Text,
}

/// Separates reasoning from text while it streams.
#[derive(Debug, Default)]
pub(crate) struct Thoughts {
    phase: Phase,
    /// A suffix that may be the beginning of a mark.
    held: String,
    thinking: String,
    text: String,
    /// Whether reasoning already took the first block number.
    thought: bool,
}

impl Thoughts {
    /// Takes the next piece.
    pub(crate) fn feed(&mut self, piece: &str, events: &mut Vec<ModelEvent>) {
        if piece.is_empty() {
            return;
        }
        if self.phase == Phase::Text {
            return self.say(piece, events);
        }
        self.held.push_str(piece);
        if self.phase == Phase::Start {
            let begun = self.held.trim_start();
            if let Some(rest) = begun.strip_prefix(OPEN) {
                self.held = rest.to_owned();
                self.phase = Phase::Thinking;
            } else if OPEN.starts_with(begun) {
                return;
            } else {
                self.phase = Phase::Text;
                let held = std::mem::take(&mut self.held);
                return self.say(&held, events);
            }
        }
        self.think_on(events);
    }

    fn think_on(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some((before, after)) = self.held.split_once(CLOSE) {
            let (before, after) = (before.to_owned(), after.to_owned());
            self.held.clear();
            self.think(&before, events);
            self.phase = Phase::Text;
            return self.say(&after, events);
        }
        // All marks are ASCII, so a cut before one is at a character boundary.
        let tail = (1..CLOSE.len())
            .rev()
            .find(|length| {
                CLOSE
                    .get(..*length)
                    .is_some_and(|begun| self.held.ends_with(begun))
            })
            .unwrap_or(0);
        let kept = self.held.split_off(self.held.len().saturating_sub(tail));
        let sure = std::mem::replace(&mut self.held, kept);
        self.think(&sure, events);
    }

    fn think(&mut self, piece: &str, events: &mut Vec<ModelEvent>) {
        if !piece.is_empty() {
            self.thought = true;
            self.thinking.push_str(piece);
            events.push(ModelEvent::ThinkingDelta {
                block: 0,
                text: piece.to_owned(),
            });
        }
    }

    fn say(&mut self, piece: &str, events: &mut Vec<ModelEvent>) {
        // The blank lines between the reasoning and the answer belong to neither.
        let piece = if self.text.is_empty() {
            piece.trim_start()
        } else {
            piece
        };
        if !piece.is_empty() {
            self.text.push_str(piece);
            events.push(ModelEvent::TextDelta {
                block: u32::from(self.thought),
                text: piece.to_owned(),
            });
        }
    }

    /// The blocks. `opened`: the prompt itself ended with the opening mark, so the text starts inside the reasoning.
    pub(crate) fn into_blocks(mut self, opened: bool) -> Vec<Block> {
        let held = std::mem::take(&mut self.held);
        match self.phase {
            Phase::Thinking => self.thinking.push_str(&held),
            Phase::Start | Phase::Text => self.text.push_str(&held),
        }
        if opened && self.thinking.is_empty() {
            let all = std::mem::take(&mut self.text);
            let (thinking, text) = all.split_once(CLOSE).unwrap_or((&all, ""));
            thinking.clone_into(&mut self.thinking);
            text.trim_start().clone_into(&mut self.text);
        }
        let mut blocks = Vec::new();
        let thinking = self.thinking.trim();
        if !thinking.is_empty() {
            blocks.push(Block::Thinking {
                text: thinking.to_owned(),
                raw: None,
            });
        }
        if !self.text.trim().is_empty() {
            blocks.push(Block::text(self.text));
        }
        blocks
    }
}
