//! The model's text on its way to stdout: sanitized, and wrapped at words if stdout is a terminal.

use crate::failure::Failure;
use crate::interactive::screen::Screen;
use crate::output::Output;
use agentd_text::{Pieces, Shown, Wrap};

/// The held-back end of a streaming text. `columns` is the width of the terminal, if stdout is one.
#[derive(Debug, Default)]
pub(super) struct Prose {
    pieces: Pieces,
    wrap: Wrap,
}

impl Prose {
    /// The change that this piece makes on the screen.
    pub(super) fn next(&mut self, piece: &str, columns: Option<usize>) -> Shown {
        let text = self.pieces.next(piece);
        self.wrapped(text, columns)
    }

    /// Flushes the held-back text before other output; the text may continue after it.
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
    /// Erases the last word if it moves to the next line, and shows what follows.
    pub(super) fn change(&mut self, out: &mut Output, shown: &Shown) -> Result<(), Failure> {
        if shown.back > 0 {
            self.unfinished.take(shown.back);
            out.raw(format!("\x1b[{}D\x1b[K", shown.back_columns).as_bytes())?;
        }
        self.put(out, &shown.text)
    }
}
