//! Which part of the transcript is on the screen. The position is an entry and a line of it, so no part of the log that
//! is off the screen is ever laid out.

use crate::entry::Entry;
use crate::layout::{Layouts, Lines, Look, apart};
use agentd_protocol::Timestamp;
use ratatui::text::Line;
use std::collections::VecDeque;

/// The position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Position {
    /// At the end, and it stays there.
    #[default]
    Follow,
    /// The first row is this one of this entry.
    At { entry: u64, row: usize },
}

/// A row of the screen.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    /// The entry; 0: what streams, which is no entry yet.
    pub(crate) entry: u64,
    pub(crate) line: Line<'static>,
}

/// The transcript as rows.
pub(crate) struct Rows<'a> {
    pub(crate) entries: &'a VecDeque<Entry>,
    pub(crate) layouts: &'a Layouts,
    pub(crate) look: Look,
    pub(crate) now: Timestamp,
    /// What streams below the entries, in parts.
    pub(crate) live: &'a [Lines],
}

/// The rows of one entry. Nothing is copied before it is on the screen.
struct Block<'a> {
    /// Whether an empty line separates it from the entry before.
    gap: bool,
    entry: Option<Lines>,
    live: &'a [Lines],
}

impl Block<'_> {
    fn len(&self) -> usize {
        let parts = self.entry.iter().chain(self.live);
        usize::from(self.gap) + parts.map(|part| part.len()).sum::<usize>()
    }

    /// The rows from one on, at most this many.
    fn rows(&self, from: usize, most: usize) -> impl Iterator<Item = Line<'static>> {
        let gap = self.gap.then(Line::default);
        let parts = self.entry.iter().chain(self.live);
        let lines = parts.flat_map(|part| part.iter());
        let first = gap.filter(|_| from == 0);
        let from = from.saturating_sub(usize::from(self.gap));
        let rows = first.into_iter().chain(lines.skip(from).cloned());
        rows.take(most)
    }
}

impl<'a> Rows<'a> {
    /// The rows of one entry, with the empty line before it. Index `len` is what streams.
    fn block(&self, index: usize) -> Block<'a> {
        let before = index.checked_sub(1).and_then(|before| self.entries.get(before));
        let Some(entry) = self.entries.get(index) else {
            return Block {
                gap: !self.live.is_empty() && before.is_some(),
                entry: None,
                live: self.live,
            };
        };
        Block {
            gap: before.is_some_and(|before| apart(before, entry)),
            entry: Some(self.layouts.lines(entry, self.look, self.now)),
            live: &[],
        }
    }

    fn id(&self, index: usize) -> u64 {
        self.entries.get(index).map_or(0, |entry| entry.id)
    }

    pub(crate) fn index(&self, id: u64) -> Option<usize> {
        if id == 0 {
            return Some(self.entries.len());
        }
        self.entries.iter().position(|entry| entry.id == id)
    }

    /// The position of the first row when the last `height` rows are shown; `None` if everything fits.
    fn last(&self, height: usize) -> Option<(usize, usize)> {
        let mut left = height;
        for index in (0..=self.entries.len()).rev() {
            let rows = self.block(index).len();
            if rows >= left {
                let row = rows - left;
                return (index > 0 || row > 0).then_some((index, row));
            }
            left -= rows;
        }
        None
    }

    /// Where the first row is.
    fn start(&self, position: Position, height: usize) -> (usize, usize) {
        let last = || self.last(height).unwrap_or((0, 0));
        match position {
            Position::Follow => last(),
            Position::At { entry, row } => match self.index(entry) {
                Some(index) => (index, row).min(last()),
                None => last(),
            },
        }
    }

    /// The rows on the screen.
    pub(crate) fn visible(&self, position: Position, height: usize) -> Vec<Shown> {
        let (mut index, mut row) = self.start(position, height);
        let mut shown = Vec::new();
        while shown.len() < height && index <= self.entries.len() {
            let entry = self.id(index);
            let left = height - shown.len();
            let block = self.block(index);
            shown.extend(block.rows(row, left).map(|line| Shown { entry, line }));
            (index, row) = (index + 1, 0);
        }
        shown
    }

    /// The position after moving by some rows; negative is up. The flag tells whether the beginning was hit.
    pub(crate) fn moved(&self, position: Position, height: usize, by: isize) -> (Position, bool) {
        let (mut index, mut row) = self.start(position, height);
        let mut left = by.unsigned_abs();
        let mut hit = false;
        while left > 0 {
            if by < 0 {
                if row > 0 {
                    let step = row.min(left);
                    row -= step;
                    left -= step;
                } else if index > 0 {
                    index -= 1;
                    row = self.block(index).len();
                } else {
                    hit = true;
                    break;
                }
            } else {
                let rows = self.block(index).len();
                let step = rows.saturating_sub(row).min(left);
                row += step;
                left -= step;
                if row >= rows {
                    if index >= self.entries.len() {
                        break;
                    }
                    (index, row) = (index + 1, 0);
                }
            }
        }
        let end = self.last(height);
        if end.is_none_or(|end| (index, row) >= end) {
            return (Position::Follow, hit);
        }
        let entry = self.id(index);
        (Position::At { entry, row }, hit)
    }

    /// The position that shows this entry at the top.
    pub(crate) fn at(&self, index: usize, height: usize) -> Position {
        match self.last(height) {
            Some(end) if (index, 0) < end => Position::At {
                entry: self.id(index),
                row: 0,
            },
            Some(_) | None => Position::Follow,
        }
    }
}
