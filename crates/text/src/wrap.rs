//! Wraps prose for a terminal: lines break between words, and a list item continues below its own text. Code blocks,
//! tables and indented lines stay unchanged.

use unicode_width::UnicodeWidthChar as _;

/// On a narrower terminal nothing is wrapped.
const NARROW: usize = 20;
/// Deeper indentation is not kept on continuation lines.
const MAX_INDENT: usize = 12;

/// Wraps a text that arrives in pieces. Shows an incomplete word, and moves it to the next line if it grows too long.
#[derive(Debug, Clone, Default)]
pub struct Wrap {
    /// The column where the gap begins.
    column: usize,
    /// White space, followed by a word that may continue.
    gap: String,
    word: String,
    /// Bytes of the gap and the word that are already on the screen.
    shown: usize,
    /// The indentation of this line's continuation.
    indent: usize,
    /// Whether the line has a complete word.
    begun: bool,
    /// Whether the line is passed through unchanged.
    verbatim: bool,
    fenced: bool,
}

/// The change that a piece makes on the screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown {
    /// The number of characters before the cursor, all on its line, to erase first.
    pub back: usize,
    /// The columns that those characters occupy.
    pub back_columns: usize,
    /// The text to show next.
    pub text: String,
}

impl Wrap {
    /// The change that this piece makes on a terminal of this width.
    pub fn next(&mut self, piece: &str, columns: usize) -> Shown {
        let mut out = Shown::default();
        if columns < NARROW {
            out.text = piece.to_owned();
            return out;
        }
        for c in piece.chars() {
            if c == '\n' {
                self.put(columns, &mut out, true);
                out.text.push('\n');
                let fenced = self.fenced;
                *self = Self {
                    fenced,
                    ..Self::default()
                };
            } else if self.verbatim {
                out.text.push(c);
            } else if c == ' ' || c == '\t' {
                self.put(columns, &mut out, true);
                self.gap.push(c);
            } else if c.width() == Some(2) {
                // Scripts without spaces break at each character.
                self.put(columns, &mut out, true);
                self.word.push(c);
                self.put(columns, &mut out, true);
            } else {
                self.word.push(c);
                self.look_at_the_beginning(&mut out);
            }
        }
        self.put(columns, &mut out, false);
        out
    }

    /// Ends the text, or pauses it before other output; returns what has not been shown yet.
    pub fn end(&mut self) -> String {
        let whole = self.whole();
        let held = whole.get(self.shown..).unwrap_or_default().trim_end().to_owned();
        *self = Self::default();
        held
    }

    fn whole(&self) -> String {
        format!("{}{}", self.gap, self.word)
    }

    /// Recognizes a fence, a table or an indented line by its first characters.
    fn look_at_the_beginning(&mut self, out: &mut Shown) {
        if self.begun {
            return;
        }
        let fence = self.word == "```" || self.word == "~~~";
        if fence {
            self.fenced = !self.fenced;
        }
        let code = self.gap.len() >= 4 || self.gap.contains('\t') || (self.fenced && !self.may_be_fence());
        if fence || code || self.word.starts_with('|') {
            self.verbatim = true;
            out.text
                .push_str(self.whole().get(self.shown..).unwrap_or_default());
            self.gap.clear();
            self.word.clear();
        }
    }

    fn may_be_fence(&self) -> bool {
        !self.begun && self.word.len() < 3 && self.word.chars().all(|c| c == '`' || c == '~')
    }

    /// Shows the word as far as possible; it may still grow unless `complete`.
    fn put(&mut self, columns: usize, out: &mut Shown, complete: bool) {
        if self.word.is_empty() || (!complete && self.may_be_fence()) {
            return;
        }
        let mut whole = self.whole();
        let mut end = self.column + width(&whole);
        if self.begun && self.column > self.indent && end > columns {
            let taken = whole.get(..self.shown).unwrap_or_default();
            out.back += taken.chars().count();
            out.back_columns += width(taken);
            out.text.push('\n');
            out.text.push_str(&" ".repeat(self.indent));
            self.gap.clear();
            (self.column, self.shown) = (self.indent, 0);
            whole.clone_from(&self.word);
            end = self.column + width(&whole);
        }
        // After writing the last column, a terminal's cursor stays on it, so nothing there could be erased.
        if complete || end < columns || self.column == self.indent {
            out.text.push_str(whole.get(self.shown..).unwrap_or_default());
            self.shown = whole.len();
        }
        if !complete {
            return;
        }
        if !self.begun {
            let marker = matches!(self.word.as_str(), "-" | "*" | "+" | "•" | ">")
                || self
                    .word
                    .strip_suffix(['.', ')'])
                    .is_some_and(|number| number.parse::<u16>().is_ok());
            self.indent = width(&self.gap) + if marker { width(&self.word) + 1 } else { 0 };
            self.indent = Some(self.indent)
                .filter(|indent| *indent <= MAX_INDENT)
                .unwrap_or(0);
        }
        // The terminal itself breaks a word that is wider than a line.
        self.column = if end > columns { end % columns } else { end };
        self.begun = true;
        self.shown = 0;
        self.gap.clear();
        self.word.clear();
    }
}

fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Wraps a complete text.
#[must_use]
pub fn wrapped(text: &str, columns: usize) -> String {
    let mut wrap = Wrap::default();
    // In a single piece nothing is on the screen yet, so nothing needs erasing.
    let shown = wrap.next(text, columns).text;
    shown + &wrap.end()
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
    fn code_tables_and_long_words_are_unchanged() {
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
    fn a_growing_word_moves_to_the_next_line() {
        let mut wrap = Wrap::default();
        let mut next = |piece: &str| {
            let shown = wrap.next(piece, 20);
            (shown.back, shown.text)
        };
        assert_eq!(next("one two three four"), (0, "one two three four".to_owned()));
        // The last column stays free as long as the word may go on.
        assert_eq!(next("te"), (0, String::new()));
        assert_eq!(next("e"), (5, "\nfourtee".to_owned()));
        assert_eq!(next("n "), (0, "n".to_owned()));
    }

    #[test]
    fn wide_characters_break_anywhere() {
        assert_eq!(
            wrapped(&"漢字".repeat(6), 20),
            format!("{}\n漢字", "漢字".repeat(5))
        );
    }

    #[test]
    fn pieces_wrap_like_the_whole_text() {
        let text = "# A heading that is long\n\nSome *words* and `code here` go on.\n```\nx  y\n```\n1. item with more words\n\tend of it";
        let whole = wrapped(text, 20);
        for size in 1..9 {
            let mut wrap = Wrap::default();
            let chars: Vec<char> = text.chars().collect();
            let mut shown = String::new();
            for piece in chars.chunks(size) {
                let next = wrap.next(&piece.iter().collect::<String>(), 20);
                for _ in 0..next.back {
                    assert_ne!(shown.pop(), Some('\n'), "only the line of the cursor changes");
                }
                shown.push_str(&next.text);
            }
            shown.push_str(&wrap.end());
            assert_eq!(shown, whole, "{size}");
        }
        // Nothing is lost but the white space at a break.
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&whole), words(text));
    }
}
