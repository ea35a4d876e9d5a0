//! Lines that a person types.

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines, Stdin};

/// stdin by lines, opened when the first line is wanted.
#[derive(Debug, Default)]
pub(crate) struct Console {
    lines: Option<Lines<BufReader<Stdin>>>,
    ended: bool,
}

impl Console {
    /// Whether a line can still come.
    pub(crate) const fn open(&self) -> bool {
        !self.ended
    }

    /// The next line; `None` at the end. Cancel-safe.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let lines = self
            .lines
            .get_or_insert_with(|| BufReader::new(tokio::io::stdin()).lines());
        let line = lines.next_line().await.ok().flatten();
        self.ended = line.is_none();
        line
    }
}
