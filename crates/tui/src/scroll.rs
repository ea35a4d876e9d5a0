//! Which part of the transcript is on the screen. The position is an entry and a line of it, so no part of the log that
//! is off the screen is ever laid out.

use crate::entry::Entry;
use crate::layout::{Layouts, Look, apart};
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
    /// What streams below the entries.
    pub(crate) live: &'a [Line<'static>],
}

impl Rows<'_> {
    /// The rows of one entry, with the empty line before it. Index `len` is what streams.
    fn block(&self, index: usize) -> Vec<Line<'static>> {
        let before = index.checked_sub(1).and_then(|before| self.entries.get(before));
        let Some(entry) = self.entries.get(index) else {
            let mut lines = Vec::new();
            if !self.live.is_empty() && before.is_some() {
                lines.push(Line::default());
            }
            lines.extend(self.live.iter().cloned());
            return lines;
        };
        let mut lines = Vec::new();
        if before.is_some_and(|before| apart(before, entry)) {
            lines.push(Line::default());
        }
        lines.extend(self.layouts.lines(entry, self.look, self.now).iter().cloned());
        lines
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
            let lines = self.block(index).into_iter().skip(row);
            let left = height - shown.len();
            shown.extend(lines.take(left).map(|line| Shown { entry, line }));
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
