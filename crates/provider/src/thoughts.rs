//! Reasoning within the text of an answer: between two marks at its beginning.

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

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Thought(String),
    Said(String),
}

/// Separates reasoning from text while it streams.
#[derive(Debug, Default)]
pub(crate) struct Thoughts {
    phase: Phase,
    /// A suffix that may be the beginning of a mark.
    held: String,
    /// There was reasoning, so the blank lines that follow it belong to neither.
    thought: bool,
}

impl Thoughts {
    /// Takes the next piece of text.
    pub(crate) fn feed(&mut self, piece: &str) -> Vec<Piece> {
        if self.phase == Phase::Text {
            return vec![Piece::Said(piece.to_owned())];
        }
        self.held.push_str(piece);
        let mut pieces = Vec::new();
        // Reasoning may follow reasoning.
        while self.step(&mut pieces) {}
        pieces
    }

    /// What is still held at the end of the answer.
    pub(crate) fn end(&mut self) -> Option<Piece> {
        let held = std::mem::take(&mut self.held);
        match self.phase {
            _ if held.is_empty() => None,
            Phase::Thinking => Some(Piece::Thought(held)),
            Phase::Start | Phase::Text => Some(Piece::Said(held)),
        }
    }

    /// One step from phase to phase. False: more text is needed, or it is all said.
    fn step(&mut self, pieces: &mut Vec<Piece>) -> bool {
        match self.phase {
            Phase::Text => false,
            Phase::Thinking => self.think(pieces),
            Phase::Start => {
                let begun = self.held.trim_start();
                if let Some(rest) = begun.strip_prefix(OPEN) {
                    self.held = rest.to_owned();
                    self.phase = Phase::Thinking;
                    self.thought = true;
                    return true;
                }
                if !OPEN.starts_with(begun) {
                    let said = if self.thought { begun } else { &self.held };
                    pieces.push(Piece::Said(said.to_owned()));
                    self.held.clear();
                    self.phase = Phase::Text;
                }
                false
            }
        }
    }

    fn think(&mut self, pieces: &mut Vec<Piece>) -> bool {
        let mut thought = |text: &str| {
            if !text.is_empty() {
                pieces.push(Piece::Thought(text.to_owned()));
            }
        };
        if let Some((before, after)) = self.held.split_once(CLOSE) {
            thought(before);
            self.held = after.to_owned();
            self.phase = Phase::Start;
            return !self.held.is_empty();
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
        thought(&std::mem::replace(&mut self.held, kept));
        false
    }
}

/// Splits a text whose prompt ended with the opening mark: it begins within the reasoning.
pub(crate) fn split_opened(text: &str) -> (&str, &str) {
    let (thinking, said) = text.split_once(CLOSE).unwrap_or((text, ""));
    (thinking, said.trim_start())
}

/// The same if nothing tells how the prompt ended: only a closing mark on a line of its own is one.
pub(crate) fn split_closed(text: &str) -> Option<(&str, &str)> {
    let (thinking, said) = text.split_once(CLOSE)?;
    let alone = thinking.ends_with('\n') && (said.is_empty() || said.starts_with(['\n', '\r']));
    let quoted = thinking.matches("```").count() % 2 == 1 || thinking.contains(OPEN);
    (alone && !quoted).then(|| (thinking.trim(), said.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reasoning and the text of an answer that arrives in pieces of a size.
    fn split(text: &str, size: usize) -> (String, String) {
        let (mut thoughts, mut all) = (Thoughts::default(), Vec::new());
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(size) {
            all.extend(thoughts.feed(&piece.iter().collect::<String>()));
        }
        all.extend(thoughts.end());
        let (mut thought, mut said) = (String::new(), String::new());
        for piece in all {
            match piece {
                Piece::Thought(text) => thought.push_str(&text),
                Piece::Said(text) => said.push_str(&text),
            }
        }
        (thought, said)
    }

    #[test]
    fn reasoning_is_separated_however_it_is_cut() {
        let check = |text: &str, thought: &str, said: &str| {
            for size in [1, 2, 5, 1_000] {
                assert_eq!(
                    split(text, size),
                    (thought.to_owned(), said.to_owned()),
                    "{text} by {size}"
                );
            }
        };
        check("<think>hm</think>Hi", "hm", "Hi");
        check(
            "\n<think>\nhm <b\n</think>\n\nHi <think>",
            "\nhm <b\n",
            "Hi <think>",
        );
        check("<think>a</think>\n<think>b</think>\nHi", "ab", "Hi");
        check("<think>hm", "hm", "");
        check("<think>hm</thi", "hm</thi", "");
        check("<think></think>", "", "");
        check("  Hi", "", "  Hi");
        check("<thin", "", "<thin");
        check("<thinking>", "", "<thinking>");
        check("Say <think>x</think>", "", "Say <think>x</think>");
        check("", "", "");
    }

    #[test]
    fn a_closing_mark_alone_counts_on_its_own_line() {
        assert_eq!(split_closed("hm\n</think>\n\nHi"), Some(("hm", "Hi")));
        assert_eq!(split_closed("hm\n</think>"), Some(("hm", "")));
        assert_eq!(split_closed("The tag </think> ends it."), None);
        assert_eq!(split_closed("```\n<x>\n</think>\n```"), None);
        assert_eq!(split_closed("Hi"), None);
        assert_eq!(split_opened("hm</think>\n\nHi"), ("hm", "Hi"));
        assert_eq!(split_opened("hm"), ("hm", ""));
    }
}
