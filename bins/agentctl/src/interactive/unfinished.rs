//! The text of a streaming answer on a terminal. Other output must know where it ends, and a failed attempt erases it.

use unicode_width::UnicodeWidthChar as _;

const TAB: usize = 8;
/// A longer text cannot fit on any screen.
const MOST: usize = 64 << 10;

/// The text printed since the beginning of a line, and whether other output follows it.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    text: String,
    buried: bool,
}

impl Unfinished {
    pub(crate) fn add(&mut self, text: &str) {
        if self.text.len() + text.len() > MOST {
            self.buried = true;
        }
        if !self.buried {
            self.text.push_str(text);
        }
    }

    /// The last `chars` characters were erased from the screen.
    pub(crate) fn take(&mut self, chars: usize) {
        if !self.buried {
            (0..chars).for_each(|_| _ = self.text.pop());
        }
    }

    /// Other output follows the text, so it can no longer be erased.
    pub(crate) fn bury(&mut self) {
        self.buried = !self.text.is_empty();
    }

    /// The column after its last character, from 0, on a terminal of this width; `None` if unknown.
    pub(crate) fn column(&self, columns: usize) -> Option<usize> {
        (!self.buried).then(|| place(&self.text, columns).1)
    }

    /// The output that erases it on a terminal of this size; `None` if part of it has scrolled off the screen.
    pub(crate) fn erase(&self, (columns, rows): (usize, usize)) -> Option<String> {
        let (down, _) = place(&self.text, columns);
        if self.buried || down >= rows {
            return None;
        }
        let up = if down == 0 {
            String::new()
        } else {
            format!("\x1b[{down}A")
        };
        Some(format!("\r{up}\x1b[J"))
    }
}

/// The row (relative to its start) and the column where a text ends.
fn place(text: &str, columns: usize) -> (usize, usize) {
    let columns = columns.max(1);
    let (mut row, mut column) = (0, 0);
    for c in text.chars() {
        match c {
            '\n' => (row, column) = (row + 1, 0),
            '\t' => column = ((column / TAB + 1) * TAB).min(columns - 1),
            c => {
                let width = c.width().unwrap_or(0);
                if column + width > columns {
                    (row, column) = (row + 1, 0);
                }
                column += width;
            }
        }
    }
    (row, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_where_a_terminal_puts_its_cursor() {
        for (text, end) in [
            ("", (0, 0)),
            ("four", (0, 4)),
            ("exactly10!", (0, 10)),
            ("exactly10!+", (1, 1)),
            ("a\nbc", (1, 2)),
            ("a\n", (1, 0)),
            ("a\tb", (0, 9)),
            ("123456789\t", (0, 9)),
            ("123456789\u{7d50}", (1, 2)),
        ] {
            assert_eq!(place(text, 10), end, "{text:?}");
        }
    }

    #[test]
    fn what_nothing_stands_below_of_and_is_on_the_screen_can_be_erased() {
        let mut text = Unfinished::default();
        text.add("one ");
        assert_eq!(text.erase((10, 3)).as_deref(), Some("\r\x1b[J"));
        text.add("and a half\nthree");
        assert_eq!(text.erase((10, 3)).as_deref(), Some("\r\x1b[2A\x1b[J"));
        assert_eq!(text.erase((10, 2)), None, "its first line has left the screen");
        assert_eq!(text.column(10), Some(5));
        text.bury();
        assert_eq!((text.erase((10, 3)), text.column(10)), (None, None));
        let mut long = Unfinished::default();
        long.add(&"x".repeat(MOST + 1));
        assert_eq!(long.erase((usize::MAX, 2)), None);
    }
}
