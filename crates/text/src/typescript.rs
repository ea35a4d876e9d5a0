//! Converts terminal output to plain text: removes escape sequences, and keeps only the last version of a line that
//! was overwritten.

/// The longest string in an escape sequence (a title, a link) that is removed. Anything longer is treated as text.
const MAX_STRING: usize = 4_096;

/// Removes escape sequences from output that arrives in pieces, even if a piece ends inside one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Typescript(Position);

/// The position inside an escape sequence where the last piece ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Position {
    /// Outside of any sequence.
    #[default]
    Text,
    /// After the escape character.
    Escape,
    /// In the parameters of a sequence.
    Parameters,
    /// In the string of a sequence, after this many characters.
    String(usize),
    /// After an escape character within a string.
    StringEnd,
}

impl Typescript {
    /// Returns the text of the next piece. Keeps line breaks, tabs, carriage returns, backspaces and NUL for [`settled`] and
    /// [`last_versions`](crate::last_versions).
    pub fn text_of(&mut self, piece: &str) -> String {
        let mut text = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.0 = self.0.behind(c, &mut text);
        }
        text
    }
}

impl Position {
    fn behind(self, c: char, text: &mut String) -> Self {
        match (self, c) {
            (Self::String(_) | Self::StringEnd, '\u{7}' | '\u{9c}' | '\u{18}' | '\u{1a}') => Self::Text,
            (Self::String(_), '\u{1b}') => Self::StringEnd,
            (Self::StringEnd, '\\') => Self::Text,
            (Self::String(length), _) if length < MAX_STRING => Self::String(length + 1),
            (Self::StringEnd, _) => Self::Escape.behind(c, text),
            (_, '\u{1b}') => Self::Escape,
            (Self::Escape, '[') => Self::Parameters,
            (Self::Escape, ']' | 'P' | 'X' | '^' | '_') => Self::String(0),
            // An intermediate byte: the sequence continues.
            (Self::Escape, ' '..='/') => Self::Escape,
            (Self::Escape, '0'..='~') => Self::Text,
            (Self::Parameters, ' '..='?') => Self::Parameters,
            (Self::Parameters, '@'..='~') => Self::Text,
            (Self::Text | Self::Escape | Self::Parameters | Self::String(_), _) => said(c, text),
        }
    }
}

fn said(c: char, text: &mut String) -> Position {
    match c {
        '\u{9b}' => return Position::Parameters,
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => return Position::String(0),
        '\n' | '\r' | '\t' | '\u{8}' | '\0' => text.push(c),
        c if !c.is_control() => text.push(c),
        _ => {}
    }
    Position::Text
}

/// The text as a terminal would show it in the end: the last version of each overwritten line, without erased
/// characters. Terminals ignore NUL.
#[must_use]
pub fn settled(text: &str) -> String {
    let text = text.replace('\0', "");
    let lines: Vec<String> = text.split('\n').map(last_version).collect();
    lines.join("\n")
}

pub(crate) fn last_version(line: &str) -> String {
    let mut versions = line.rsplit('\r');
    let last = versions.find(|version| !version.is_empty()).unwrap_or_default();
    let mut kept = String::with_capacity(last.len());
    for c in last.chars() {
        if c == '\u{8}' {
            kept.pop();
        } else {
            kept.push(c);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        settled(&Typescript::default().text_of(text))
    }

    #[test]
    fn escape_sequences_are_removed_and_text_stays() {
        for (said, read) in [
            ("\u{1b}[1;31merror\u{1b}[0m: no\r\n", "error: no\n"),
            ("\u{1b}]0;a title\u{7}> ", "> "),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}(B\u{1b}=a\u{9b}2Kb\u{9d}x\u{9c}c", "abc"),
            ("\u{1b}[?2004h$ ls\u{7}\u{0}\u{7f}", "$ ls"),
            ("a\tb\u{e4}\u{4e16}", "a\tb\u{e4}\u{4e16}"),
            ("\u{1b}[3\u{e4}", "\u{e4}"),
            ("\u{1b}P1$r\u{18}x", "x"),
        ] {
            assert_eq!(plain(said), read, "{said:?}");
        }
    }

    #[test]
    fn the_split_of_pieces_does_not_matter() {
        let said = "one \u{1b}[31mtwo\u{1b}[0m \u{1b}]0;title\u{1b}\\three\r\n";
        let whole = Typescript::default().text_of(said);
        for (at, _) in said.char_indices() {
            let mut pieces = Typescript::default();
            let (first, second) = said.split_at(at);
            assert_eq!(pieces.text_of(first) + &pieces.text_of(second), whole, "at {at}");
        }
        assert_eq!(settled(&whole), "one two three\n");
    }

    #[test]
    fn an_unterminated_sequence_removes_no_more_than_its_limit() {
        let said = format!("\u{1b}]{}", "x".repeat(MAX_STRING + 5));
        assert_eq!(plain(&said), "x".repeat(5));
    }

    #[test]
    fn an_overwritten_line_appears_once() {
        assert_eq!(plain("10%\r50%\r100%\r\ndone\r\n"), "100%\ndone\n");
        assert_eq!(plain("passwort\u{8}d\r\n\u{8}\u{8}a"), "password\na");
        assert_eq!(plain("begun\r"), "begun");
    }
}
