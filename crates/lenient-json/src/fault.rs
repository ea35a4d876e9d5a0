//! What is wrong with a text, and where.

use std::fmt;

/// What is wrong at a byte of a text. Finding its line takes a pass over the text, so that is only done on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mistake {
    pub(crate) what: &'static str,
    pub(crate) at: usize,
}

impl Mistake {
    /// The mistake with its place, for people and models.
    #[must_use]
    pub fn located(self, text: &str) -> Fault {
        Fault::at(text, self.at, self.what)
    }
}

/// Why a text cannot be read without guessing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    what: &'static str,
    line: usize,
    column: usize,
    /// The next few characters at that place.
    near: String,
}

/// Enough to find the place again.
const NEAR: usize = 16;

impl Fault {
    /// A fault at a byte of the text.
    pub(crate) fn at(text: &str, byte: usize, what: &'static str) -> Self {
        let byte = text.floor_char_boundary(byte);
        let (before, after) = text.split_at(byte);
        let line_start = before.rfind('\n').map_or(0, |at| at.saturating_add(1));
        Self {
            what,
            line: before.matches('\n').count().saturating_add(1),
            column: before
                .get(line_start..)
                .unwrap_or_default()
                .chars()
                .count()
                .saturating_add(1),
            near: after.chars().take(NEAR).collect(),
        }
    }

    /// Whether the text ends too early, as if it had been cut off.
    #[must_use]
    pub fn ends_early(&self) -> bool {
        self.near.is_empty() || self.what.ends_with("does not end")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            line,
            column,
            near,
            ..
        } = self;
        write!(f, "{what} (line {line}, column {column}")?;
        if near.is_empty() {
            write!(f, ", at the end)")
        } else {
            write!(f, ", at {near:?})")
        }
    }
}

impl std::error::Error for Fault {}
