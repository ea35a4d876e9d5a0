//! The line that a person types, key by key, so that it is known which question was shown when it was begun.

use crate::render::clean;
use agentd_protocol::ApprovalId;
use unicode_width::UnicodeWidthChar as _;

/// The most bytes of a line; further input is ignored.
const MOST: usize = 64 << 10;
/// Erases the character to the left of the cursor.
const ERASE: &str = "\u{8} \u{8}";

/// The part of a line typed so far.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    text: String,
    /// The question that was shown when the line was begun.
    about: Option<ApprovalId>,
    /// The first bytes of an incomplete UTF-8 character.
    bytes: Vec<u8>,
    keys: Keys,
}

/// A complete line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedLine {
    pub(crate) text: String,
    /// The question that was shown when the line was begun.
    pub(crate) about: Option<ApprovalId>,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typing {
    /// Write this to the terminal.
    Echo(String),
    /// Enter.
    Line(TypedLine),
    /// Ctrl-D on an empty line.
    End,
}

/// Parser state for keys that send several bytes, such as arrows; such keys are ignored.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Keys {
    #[default]
    Plain,
    Escaped,
    Sequence,
}

impl Draft {
    /// Takes typed bytes; `shown` is the question currently shown.
    pub(crate) fn typed(&mut self, bytes: &[u8], shown: Option<ApprovalId>) -> Vec<Typing> {
        let mut all: Vec<Typing> = Vec::new();
        for byte in bytes {
            let Some(typing) = self.byte(*byte, shown) else {
                continue;
            };
            match (all.last_mut(), typing) {
                (Some(Typing::Echo(before)), Typing::Echo(more)) => before.push_str(&more),
                (_, typing) => all.push(typing),
            }
        }
        all
    }

    /// The draft as the terminal shows it.
    pub(crate) fn seen(&self) -> String {
        self.text.chars().map(seen).collect()
    }

    /// The output that erases the draft from the terminal.
    pub(crate) fn hide(&self) -> String {
        ERASE.repeat(self.text.chars().map(width).sum())
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The question that was shown when the draft was begun.
    pub(crate) fn about(&self) -> Option<ApprovalId> {
        self.about.filter(|_| !self.text.is_empty())
    }

    /// Clears the draft and returns its text.
    pub(crate) fn take(&mut self) -> String {
        self.bytes.clear();
        self.about = None;
        std::mem::take(&mut self.text)
    }

    fn byte(&mut self, byte: u8, shown: Option<ApprovalId>) -> Option<Typing> {
        if self.inside_a_key(byte) {
            return None;
        }
        match byte {
            b'\n' | b'\r' => {
                let about = if self.text.is_empty() { shown } else { self.about };
                let text = self.take();
                Some(Typing::Line(TypedLine { text, about }))
            }
            // Ctrl-D, Ctrl-U, Ctrl-W, and the two codes of Backspace.
            0x04 => self.text.is_empty().then_some(Typing::End),
            0x15 => self.erase(self.text.chars().count()),
            0x17 => {
                let blank = |c: &char| c.is_whitespace();
                let back = || self.text.chars().rev();
                let blanks = back().take_while(blank).count();
                let word = back().skip(blanks).take_while(|c| !blank(c)).count();
                self.erase(blanks + word)
            }
            0x08 | 0x7f => self.erase(1),
            _ => self.character(byte, shown),
        }
    }

    /// Whether the byte is part of a multi-byte key such as an arrow.
    fn inside_a_key(&mut self, byte: u8) -> bool {
        let (inside, next) = match (self.keys, byte) {
            (Keys::Plain | Keys::Escaped, 0x1b) => (true, Keys::Escaped),
            (Keys::Escaped, b'[' | b'O') => (true, Keys::Sequence),
            (Keys::Sequence, 0x20..=0x3f) => (true, Keys::Sequence),
            // Enter always ends a key sequence.
            (_, b'\n' | b'\r') | (Keys::Plain, _) => (false, Keys::Plain),
            (Keys::Escaped | Keys::Sequence, _) => (true, Keys::Plain),
        };
        self.keys = next;
        inside
    }

    fn erase(&mut self, count: usize) -> Option<Typing> {
        self.bytes.clear();
        let mut columns = 0;
        for _ in 0..count {
            columns += self.text.pop().map_or(0, width);
        }
        (columns > 0).then(|| Typing::Echo(ERASE.repeat(columns)))
    }

    fn character(&mut self, byte: u8, shown: Option<ApprovalId>) -> Option<Typing> {
        self.bytes.push(byte);
        let read = std::str::from_utf8(&self.bytes).map(|text| text.chars().next());
        let c = match read {
            Ok(c) => c?,
            Err(error) if error.error_len().is_none() => return None,
            Err(_) => {
                self.bytes.clear();
                return None;
            }
        };
        self.bytes.clear();
        let takes = (!c.is_control() || c == '\t') && self.text.len() + c.len_utf8() <= MOST;
        if !takes {
            return None;
        }
        if self.text.is_empty() {
            self.about = shown;
        }
        self.text.push(c);
        Some(Typing::Echo(seen(c).to_string()))
    }
}

/// The character as shown on the terminal: `?` for one that could control it.
fn seen(c: char) -> char {
    let mut text = [0; 4];
    let text: &str = c.encode_utf8(&mut text);
    match c {
        '\t' => ' ',
        c if clean(text) == *text => c,
        _ => '?',
    }
}

fn width(c: char) -> usize {
    seen(c).width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{Stamp, Timestamp};

    fn line(text: &str, about: Option<ApprovalId>) -> Typing {
        let text = text.to_owned();
        Typing::Line(TypedLine { text, about })
    }

    fn echo(text: &str) -> Typing {
        Typing::Echo(text.to_owned())
    }

    #[test]
    fn i7_a_line_belongs_to_the_question_that_was_shown_when_it_was_begun() {
        let mut stamp = Stamp::new(Timestamp(1_763_629_200_123), 1);
        let (first, second) = (Some(stamp.approval()), Some(stamp.approval()));
        let mut draft = Draft::default();
        assert_eq!(draft.typed(b"y", first), [echo("y")]);
        assert_eq!(draft.about(), first);
        assert_eq!(draft.typed(b"\n", second), [line("y", first)]);
        assert_eq!(draft.typed(b"y\n", second), [echo("y"), line("y", second)]);
        // Emptying a line and typing again begins a new line.
        draft.typed(b"no\x15", first);
        assert_eq!((draft.about(), draft.is_empty()), (None, true));
        assert_eq!(draft.typed(b"y\n", second), [echo("y"), line("y", second)]);
        assert_eq!(draft.typed(b"a message", None), [echo("a message")]);
        assert_eq!(draft.typed(b"\n", first), [line("a message", None)]);
        draft.typed(b"dropped", first);
        assert_eq!(draft.take(), "dropped");
        assert_eq!(draft.typed(b"\n", second), [line("", second)]);
    }

    #[test]
    fn keys_edit_the_line() {
        let rows: [(&[u8], &str); 8] = [
            (b"yex\x7fs\n", "yes"),
            (b"one two  \x17three\n", "one three"),
            (b"gone\x15kept\n", "kept"),
            (
                "gr\u{fc}\u{df}e \u{7d50}\u{679c}\u{8}\n".as_bytes(),
                "gr\u{fc}\u{df}e \u{7d50}",
            ),
            (b"\x1b[A\x1b[1;5Da\x1bOPb\x1bxc\r", "abc"),
            (b"a\x00\x07\x01b\tc\n", "ab\tc"),
            (b"\xff\xc3(ok\n", "ok"),
            (b"not the end\x04\n", "not the end"),
        ];
        for (keys, wanted) in rows {
            let mut draft = Draft::default();
            let typed = draft.typed(keys, None);
            assert_eq!(typed.last(), Some(&line(wanted, None)), "{keys:?}");
        }
        assert_eq!(Draft::default().typed(b"\x04", None), [Typing::End]);
        assert_eq!(Draft::default().typed(b"\x7f\x15\x17", None), []);
    }

    #[test]
    fn what_is_seen_can_be_hidden_and_obeys_nothing() {
        let mut draft = Draft::default();
        let typed = draft.typed("a\u{7d50}\u{202e}".as_bytes(), None);
        assert_eq!(typed, [echo("a\u{7d50}?")]);
        assert_eq!(draft.seen(), "a\u{7d50}?");
        assert_eq!(draft.hide(), ERASE.repeat(4));
    }

    #[test]
    fn a_line_has_a_bound() {
        let mut draft = Draft::default();
        draft.typed(&vec![b'x'; MOST + 1], None);
        assert_eq!(draft.take().len(), MOST);
    }
}
