//! The model's text on its way to stdout: safe for a terminal, and wrapped between words where it is one.

use agentd_text::{Pieces, Wrap};

/// What is held back of a text that streams. `columns` is the width of the terminal, if stdout is one.
#[derive(Debug, Default)]
pub(super) struct Prose {
    pieces: Pieces,
    wrap: Wrap,
}

impl Prose {
    /// What can be shown after this piece.
    pub(super) fn next(&mut self, piece: &str, columns: Option<usize>) -> String {
        let text = self.pieces.next(piece);
        self.wrapped(text, columns)
    }

    /// Something else is shown next; the text may go on behind it.
    pub(super) fn pause(&mut self, columns: Option<usize>) -> String {
        columns.map_or_else(String::new, |columns| self.wrap.end(columns))
    }

    /// The text is complete.
    pub(super) fn end(&mut self, columns: Option<usize>) -> String {
        let held = self.pieces.end();
        self.wrapped(held, columns) + &self.pause(columns)
    }

    fn wrapped(&mut self, text: String, columns: Option<usize>) -> String {
        match columns {
            Some(columns) => self.wrap.next(&text, columns),
            None => text,
        }
    }
}
