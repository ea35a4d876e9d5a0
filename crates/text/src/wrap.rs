//! Prose on a terminal: lines break between words, and a list item goes on below its own text. Code blocks, tables and
//! indented lines stay as they are.

use unicode_width::UnicodeWidthChar as _;

/// Narrower than this nothing is wrapped.
const NARROW: usize = 20;
/// A deeper indentation of what goes on is not kept.
const MAX_INDENT: usize = 12;

/// Wraps a text that comes in pieces. The last word is held back until it is known to have ended.
#[derive(Debug, Clone, Default)]
pub struct Wrap {
    /// Where the next character goes.
    column: usize,
    /// White space, then a word; neither is printed yet.
    gap: String,
    word: String,
    /// Where the rest of this line goes on.
    indent: usize,
    /// The line has a word.
    begun: bool,
    /// The line stays as it is.
    verbatim: bool,
    fenced: bool,
}

impl Wrap {
    /// What can be shown after this piece, on a terminal of so many columns.
    pub fn next(&mut self, piece: &str, columns: usize) -> String {
        if columns < NARROW {
            return self.end(columns) + piece;
        }
        let mut shown = String::with_capacity(piece.len());
        for c in piece.chars() {
            if c == '\n' {
                self.put_word(columns, &mut shown);
                shown.push('\n');
                let fenced = self.fenced;
                *self = Self {
                    fenced,
                    ..Self::default()
                };
            } else if self.verbatim || (self.fenced && self.begun) {
                shown.push(c);
            } else if c == ' ' || c == '\t' {
                self.put_word(columns, &mut shown);
                self.gap.push(c);
            } else if c.width() == Some(2) {
                // Scripts without blanks break at each character.
                self.put_word(columns, &mut shown);
                self.word.push(c);
                self.put_word(columns, &mut shown);
            } else {
                self.word.push(c);
                self.look_at_the_beginning(&mut shown);
            }
        }
        shown
    }

    /// The text ends, or is interrupted: what was held back.
    pub fn end(&mut self, columns: usize) -> String {
        let mut held = String::new();
        if columns < NARROW {
            held = std::mem::take(&mut self.gap) + &self.word;
        } else {
            self.put_word(columns, &mut held);
        }
        *self = Self::default();
        held
    }

    /// A fence, a table or an indented line is known by its first characters.
    fn look_at_the_beginning(&mut self, shown: &mut String) {
        if self.begun {
            return;
        }
        let fence = self.word == "```" || self.word == "~~~";
        if fence {
            self.fenced = !self.fenced;
        }
        let code = self.gap.len() >= 4 || self.gap.contains('\t');
        if fence || code || self.fenced || self.word.starts_with('|') {
            // A backtick of a fence to come must not be printed as code before the fence is known.
            let may_be_fence = self.word.len() < 3 && self.word.chars().all(|c| c == '`' || c == '~');
            if self.fenced && !fence && may_be_fence {
                return;
            }
            self.verbatim = true;
            shown.push_str(&std::mem::take(&mut self.gap));
            shown.push_str(&std::mem::take(&mut self.word));
        }
    }

    fn put_word(&mut self, columns: usize, shown: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let (gap, word) = (std::mem::take(&mut self.gap), std::mem::take(&mut self.word));
        let (before, long) = (width(&gap), width(&word));
        if !self.begun {
            let marker = matches!(word.as_str(), "-" | "*" | "+" | "•" | ">")
                || word
                    .strip_suffix(['.', ')'])
                    .is_some_and(|number| number.parse::<u16>().is_ok());
            self.indent = before + if marker { long + 1 } else { 0 };
            self.indent = Some(self.indent)
                .filter(|indent| *indent <= MAX_INDENT)
                .unwrap_or(0);
        }
        if self.begun && self.column + before + long > columns {
            shown.push('\n');
            shown.push_str(&" ".repeat(self.indent));
            self.column = self.indent;
        } else {
            shown.push_str(&gap);
            self.column += before;
        }
        self.begun = true;
        shown.push_str(&word);
        self.column += long;
        // The terminal itself breaks a word that is longer than its lines.
        if self.column > columns {
            self.column %= columns;
        }
    }
}

fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// A whole text, wrapped.
#[must_use]
pub fn wrapped(text: &str, columns: usize) -> String {
    let mut wrap = Wrap::default();
    wrap.next(text, columns) + &wrap.end(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_breaks_between_words_and_list_items_hang() {
        let text = "The quick brown fox jumps over it.\n\n- one two three four five six\n  10. seven eight nine ten\n";
        let lines = wrapped(text, 20);
        assert_eq!(
            lines,
            "The quick brown fox\njumps over it.\n\n- one two three four\n  five six\n  10. seven eight\n      nine ten\n"
        );
    }

    #[test]
    fn code_tables_and_long_words_stay_as_they_are() {
        let code = "```rust\nlet a = \"a line that is longer than the terminal\";\n```";
        let table = "| a | b | a row that is longer than it |";
        let indented = "    a line of code that is longer than it";
        let long = "https://example.com/a/very/long/path/without/blanks";
        for text in [code, table, indented, long] {
            assert_eq!(wrapped(text, 20), text);
        }
        let after = format!("{code}\none two three four five");
        assert_eq!(wrapped(&after, 20), format!("{code}\none two three four\nfive"));
        assert_eq!(
            wrapped("a b c d e f g h i j k l m", 19),
            "a b c d e f g h i j k l m"
        );
    }

    #[test]
    fn wide_characters_break_anywhere() {
        assert_eq!(
            wrapped(&"漢字".repeat(6), 20),
            format!("{}\n漢字", "漢字".repeat(5))
        );
    }

    #[test]
    fn pieces_give_what_the_whole_gives() {
        let text = "# A heading that is long\n\nSome *words* and `code here` go on.\n```\nx  y\n```\n1. item with more words\n\tend of it";
        let whole = wrapped(text, 20);
        for size in 1..9 {
            let mut wrap = Wrap::default();
            let chars: Vec<char> = text.chars().collect();
            let mut shown: String = chars
                .chunks(size)
                .map(|piece| wrap.next(&piece.iter().collect::<String>(), 20))
                .collect();
            shown.push_str(&wrap.end(20));
            assert_eq!(shown, whole, "{size}");
        }
        // Nothing is lost but the white space at a break.
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&whole), words(text));
    }
}
