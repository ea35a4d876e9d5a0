//! Making other people's text safe for a terminal: a model's words and a tool's output can hold escape sequences that set
//! the clipboard, answer on stdin, or paint over an approval.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with everything that a terminal would obey, or that would hide what is there, made visible. Line breaks and
/// tabs stay; a lone carriage return does not, for it would overwrite the line.
#[must_use]
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    if !text
        .chars()
        .any(|c| !matches!(c, '\n' | '\t') && obeyed_or_hidden(c))
    {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => safe.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            // The control pictures show C0 controls in one cell each.
            '\0'..='\x1f' => safe.push(char::from_u32(u32::from(c) + 0x2400).unwrap_or('?')),
            c if obeyed_or_hidden(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// The same on one line of at most `max` characters, runs of white space as one space.
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

/// JSON for a terminal: the same value, with control and hidden characters as JSON escapes.
#[must_use]
pub fn json_for_terminal(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !obeyed_or_hidden(c) {
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

/// Controls (C0, DEL, C1), zero-width and bidirectional marks, line separators, the byte order mark, tag characters.
fn obeyed_or_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
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
