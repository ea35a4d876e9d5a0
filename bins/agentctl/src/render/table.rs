//! Tables: one line per row, columns as wide as their cells. A narrow terminal first drops the least important columns,
//! then cuts the widest texts.

use crate::render::Paint;
use crate::render::one_line;
use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

const GAP: &str = "  ";
/// Longer cells are useless, even without a terminal.
const LONGEST: usize = 4_000;
/// The characters that draw the branches of a tree.
const BRANCH: [char; 5] = ['│', '├', '└', '─', ' '];

/// A column: its heading, its colours, and how it shrinks when space is short.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: Cow<'static, str>,
    /// Columns with the highest rank are dropped first; rank 0 is never dropped.
    rank: u8,
    /// The narrowest width it is cut to.
    least: usize,
    /// Colours a cell that is already cut and padded.
    tint: fn(Paint, &str) -> String,
}

impl Column {
    /// For ids, states and numbers: a part of one would mislead.
    pub(crate) const fn whole(name: &'static str, rank: u8) -> Self {
        Self::text(name, rank, usize::MAX)
    }

    /// Text of which at least `least` columns should be visible.
    pub(crate) const fn text(name: &'static str, rank: u8, least: usize) -> Self {
        Self {
            name: Cow::Borrowed(name),
            rank,
            least,
            tint: plain,
        }
    }

    /// Text that the user requested by name, so it is never dropped.
    pub(crate) fn asked(name: &str, least: usize) -> Self {
        Self {
            name: Cow::Owned(name.to_owned()),
            ..Self::text("", 0, least)
        }
    }

    /// The same column with a colouring function.
    pub(crate) fn tinted(self, tint: fn(Paint, &str) -> String) -> Self {
        Self { tint, ..self }
    }
}

fn plain(_: Paint, cell: &str) -> String {
    cell.to_owned()
}

/// A column while the table is being fitted to the width.
struct Fitted {
    at: usize,
    rank: u8,
    width: usize,
    least: usize,
    tint: fn(Paint, &str) -> String,
}

/// A table with headings. Without a width it drops and cuts nothing.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>], width: Option<usize>, paint: Paint) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| tidy(cell)).collect())
        .collect();
    let headings: Vec<String> = columns.iter().map(|column| column.name.to_uppercase()).collect();
    let widest = |at: usize| {
        let cells = rows.iter().chain([&headings]).filter_map(|row| row.get(at));
        cells.map(|cell| cell.width()).max().unwrap_or_default()
    };
    let mut shown: Vec<Fitted> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| Fitted {
            at,
            rank: column.rank,
            width: widest(at),
            least: column.least.min(widest(at)),
            tint: column.tint,
        })
        .collect();
    if let Some(total) = width {
        leave_out(&mut shown, total);
        cut_down(&mut shown, total);
    }
    let mut text = format!("{}\n", paint.bold(&line(&headings, &shown, None)));
    for row in &rows {
        text.push_str(&line(row, &shown, Some(paint)));
        text.push('\n');
    }
    text
}

/// The cell as one line; tree branches keep their blanks.
fn tidy(cell: &str) -> String {
    let rest = cell.trim_start_matches(BRANCH);
    match cell.strip_suffix(rest) {
        Some(branch) if branch.contains(['├', '└']) => format!("{branch}{}", one_line(rest, LONGEST)),
        Some(_) | None => one_line(cell, LONGEST),
    }
}

fn gaps(shown: &[Fitted]) -> usize {
    GAP.len() * shown.len().saturating_sub(1)
}

/// Drops the least important columns until the rest fits at minimum width.
fn leave_out(shown: &mut Vec<Fitted>, total: usize) {
    while shown.iter().map(|column| column.least).sum::<usize>() + gaps(shown) > total {
        let last = shown.iter().map(|column| column.rank).max().unwrap_or_default();
        if last == 0 {
            return;
        }
        shown.retain(|column| column.rank != last);
    }
}

/// Narrows the widest columns until all fit.
fn cut_down(shown: &mut [Fitted], total: usize) {
    while shown.iter().map(|column| column.width).sum::<usize>() + gaps(shown) > total {
        let wider = shown.iter_mut().filter(|column| column.width > column.least);
        match wider.max_by_key(|column| column.width) {
            Some(widest) => widest.width -= 1,
            None => return,
        }
    }
}

/// A line of cells; headings are not tinted.
fn line(cells: &[String], shown: &[Fitted], tints: Option<Paint>) -> String {
    let cells = shown
        .iter()
        .filter_map(|column| Some((column, cells.get(column.at)?)));
    let mut padded: Vec<_> = cells
        .map(|(column, cell)| (column.tint, pad(cell, column.width)))
        .collect();
    while let Some((_, last)) = padded.last_mut() {
        last.truncate(last.trim_end().len());
        if !last.is_empty() {
            break;
        }
        padded.pop();
    }
    let cells = padded.into_iter().map(|(tint, cell)| match tints {
        Some(paint) => tint(paint, &cell),
        None => cell,
    });
    cells.collect::<Vec<_>>().join(GAP)
}

fn pad(cell: &str, width: usize) -> String {
    let cell = cut(cell, width);
    let missing = width.saturating_sub(cell.width());
    format!("{cell}{}", " ".repeat(missing))
}

/// The cell cut to the width, with an ellipsis if something is missing.
pub(crate) fn cut(cell: &str, width: usize) -> String {
    if cell.width() <= width {
        return cell.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for letter in cell.chars() {
        used += letter.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(letter);
    }
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests;
