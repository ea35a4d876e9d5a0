//! The model's text on its way to stdout: safe for a terminal, and wrapped between words where it is one.

use crate::failure::Failure;
use crate::output::Output;
use crate::talk::screen::Screen;
use agentd_text::{Pieces, Shown, Wrap};

/// What is held back of a text that streams. `columns` is the width of the terminal, if stdout is one.
#[derive(Debug, Default)]
pub(super) struct Prose {
    pieces: Pieces,
    wrap: Wrap,
}

impl Prose {
    /// What this piece changes on the screen.
    pub(super) fn next(&mut self, piece: &str, columns: Option<usize>) -> Shown {
        let text = self.pieces.next(piece);
        self.wrapped(text, columns)
    }

    /// Something else is shown next; the text may go on behind it.
    pub(super) fn pause(&mut self) -> String {
        self.wrap.end()
    }

    /// The text is complete.
    pub(super) fn end(&mut self, columns: Option<usize>) -> Shown {
        let held = self.pieces.end();
        let mut shown = self.wrapped(held, columns);
        shown.text.push_str(&self.pause());
        shown
    }

    fn wrapped(&mut self, text: String, columns: Option<usize>) -> Shown {
        match columns {
            Some(columns) => self.wrap.next(&text, columns),
            None => Shown {
                text,
                ..Shown::default()
            },
        }
    }
}

impl Screen {
    /// Takes the last word back, if it goes to the next line, and shows what follows.
    pub(super) fn change(&mut self, out: &mut Output, shown: &Shown) -> Result<(), Failure> {
        if shown.back > 0 {
            self.unfinished.take(shown.back);
            out.raw(format!("\x1b[{}D\x1b[K", shown.back_columns).as_bytes())?;
        }
        self.put(out, &shown.text)
    }
}
