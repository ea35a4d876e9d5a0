//! Prose on a terminal: lines break between words, and a list item goes on below its own text. Code blocks, tables and
//! indented lines stay as they are.

use unicode_width::UnicodeWidthChar as _;

/// Narrower than this nothing is wrapped.
const NARROW: usize = 20;
/// A deeper indentation of what goes on is not kept.
const MAX_INDENT: usize = 12;

/// Wraps a text that comes in pieces. A word is shown as far as it came, and goes to the next line when it gets too long.
#[derive(Debug, Clone, Default)]
pub struct Wrap {
    /// Where the gap begins.
    column: usize,
    /// White space, then a word that may go on.
    gap: String,
    word: String,
    /// Bytes of the gap and the word that are on the screen.
    shown: usize,
    /// Where the rest of this line goes on.
    indent: usize,
    /// The line has a word.
    begun: bool,
    /// The line stays as it is.
    verbatim: bool,
    fenced: bool,
}

/// What a piece changes on the screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown {
    /// So many characters before the cursor, all on its line, are taken back first.
    pub back: usize,
    /// The columns that they take.
    pub back_columns: usize,
    /// Then this is shown.
    pub text: String,
}

impl Wrap {
    /// What this piece changes, on a terminal of so many columns.
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
                // Scripts without blanks break at each character.
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

    /// Something else is shown next, or the text ends: what is not shown yet.
    pub fn end(&mut self) -> String {
        let whole = self.whole();
        let held = whole.get(self.shown..).unwrap_or_default().trim_end().to_owned();
        *self = Self::default();
        held
    }

    fn whole(&self) -> String {
        format!("{}{}", self.gap, self.word)
    }

    /// A fence, a table or an indented line is known by its first characters.
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

    /// Shows the word; it may still go on.
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
        // In the last column a terminal's cursor stands on what it has just shown: nothing there could be taken back.
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
        // The terminal itself breaks a word that is longer than its lines.
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

/// A whole text, wrapped.
#[must_use]
pub fn wrapped(text: &str, columns: usize) -> String {
    let mut wrap = Wrap::default();
    // As one piece nothing of it is on the screen yet, so nothing is taken back.
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
    fn a_word_is_shown_as_it_comes_and_moves_when_it_gets_too_long() {
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
    fn pieces_give_what_the_whole_gives() {
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
