//! Makes untrusted text safe for a terminal: model text and tool output can contain escape sequences that set the
//! clipboard, inject input, or paint over an approval.

use crate::joiner::{is_joiner, joins};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Makes visible whatever would control a terminal or hide content. Line breaks and tabs stay; a lone carriage return
/// does not, because it would overwrite the line.
#[must_use]
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    if !text
        .chars()
        .any(|c| !matches!(c, '\n' | '\t') && obeyed_or_hidden(c))
    {
        return Cow::Borrowed(text);
    }
    Cow::Owned(visible(None, text))
}

/// The safe form of a text that follows the character `before`.
fn visible(mut before: Option<char>, text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => safe.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            // Control pictures represent each C0 control in one cell.
            '\0'..='\x1f' => safe.push(char::from_u32(u32::from(c) + 0x2400).unwrap_or('?')),
            c if is_joiner(c) && joins(before, c, chars.peek().copied()) => safe.push(c),
            c if obeyed_or_hidden(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
        before = Some(c);
    }
    safe
}

/// Sanitizes a text that arrives in pieces: the meaning of a character can depend on neighbours in other pieces.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    before: Option<char>,
    /// The last character of the previous piece, if its meaning depends on the next piece.
    held: Option<char>,
}

impl Pieces {
    /// The text that can be shown after this piece.
    #[must_use]
    pub fn next(&mut self, piece: &str) -> String {
        let mut text: String = self.held.take().into_iter().collect();
        text.push_str(piece);
        let unclear = |c: &char| *c == '\r' || is_joiner(*c);
        self.held = text.chars().next_back().filter(unclear);
        if self.held.is_some() {
            text.pop();
        }
        self.visible(&text)
    }

    /// Ends the text; returns what was held back.
    #[must_use]
    pub fn end(&mut self) -> String {
        let held: String = self.held.take().into_iter().collect();
        let shown = self.visible(&held);
        *self = Self::default();
        shown
    }

    fn visible(&mut self, text: &str) -> String {
        let shown = visible(self.before, text);
        self.before = text.chars().next_back().or(self.before);
        shown
    }
}

/// The safe text on one line of at most `max` characters; collapses white space.
#[must_use]
pub fn one_line(text: &str, max: usize) -> String {
    let line = for_terminal(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if line.chars().count() <= max {
        return line;
    }
    let kept: String = line.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// JSON made safe for a terminal: the same value, with control and hidden characters escaped.
#[must_use]
pub fn json_for_terminal(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    let mut chars = json.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        let joins = is_joiner(c) && joins(before, c, chars.peek().copied());
        before = Some(c);
        if c == '\n' || joins || !obeyed_or_hidden(c) {
            safe.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(safe, "\\u{unit:04x}");
        }
    }
    safe
}

/// Controls (C0, DEL, C1), zero-width and bidirectional marks, line separators, the byte order mark, invisible fillers,
/// variation selectors (except the emoji one) and tag characters.
fn obeyed_or_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        || matches!(c, '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terminal_control_sequence_remains() {
        let attacks = [
            "\x1b]52;c;ZXZpbA==\x07",
            "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
            "\x1b[2J\x1b[6n",
            "\x1bP+q544e\x1b\\",
            "\u{9b}31m",
            "approve? no\rapprove? yes",
            "\x1b]0;title",
            "\u{8}\u{7f}",
        ];
        for attack in attacks {
            let safe = for_terminal(attack);
            assert!(
                !safe.chars().any(|c| c.is_control() && c != '\n' && c != '\t'),
                "{safe:?}"
            );
        }
    }

    #[test]
    fn hidden_characters_are_shown() {
        assert_eq!(
            for_terminal("rm\u{200b} -rf \u{202e}x"),
            "rm\\u{200b} -rf \\u{202e}x"
        );
        assert_eq!(for_terminal("a\u{e0041}"), "a\\u{e0041}");
    }

    #[test]
    fn joiners_stay_where_they_shape_letters_or_emoji() {
        let text = "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645} \u{1f469}\u{200d}\u{1f4bb}";
        assert_eq!(for_terminal(text), text);
        let json = serde_json::to_string(text).unwrap();
        assert_eq!(json_for_terminal(&json), json);
        assert_eq!(for_terminal("r\u{200d}m"), "r\\u{200d}m");
    }

    #[test]
    fn pieces_give_the_same_output_as_the_whole_text() {
        for text in [
            "plain text\n",
            "one\r\ntwo\rthree\r",
            "a\u{200d}",
            "\u{1f469}\u{200d}\u{1f4bb} r\u{200d}m \u{645}\u{200c}\u{62e}",
        ] {
            let mut pieces = Pieces::default();
            let mut shown: String = text.chars().map(|c| pieces.next(&c.to_string())).collect();
            shown.push_str(&pieces.end());
            assert_eq!(shown, for_terminal(text), "{text:?}");
        }
    }

    #[test]
    fn ordinary_text_is_untouched_and_not_copied() {
        let text = "fn main() {\n\tprintln!(\"héllo, 世界\");\n}\n";
        assert!(matches!(for_terminal(text), Cow::Borrowed(same) if same == text));
        assert_eq!(for_terminal("a\r\nb"), "a\nb");
    }

    #[test]
    fn one_line_is_short() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(one_line("abcdefghij", 10), "abcdefghij");
        assert_eq!(one_line("abcdefghijk", 10), "abcdefghi…");
    }

    #[test]
    fn json_keeps_its_value() {
        let json = serde_json::to_string("\u{202e}\u{e0041} \u{9b}").unwrap();
        let safe = json_for_terminal(&json);
        assert!(safe.is_ascii(), "{safe}");
        assert_eq!(
            serde_json::from_str::<String>(&safe).unwrap(),
            "\u{202e}\u{e0041} \u{9b}"
        );
    }
}
