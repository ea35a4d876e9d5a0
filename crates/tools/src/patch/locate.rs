//! Locates hunks in a file and applies them.

use super::text::{Alike, Text};
use super::{Hunk, Line};
use std::ops::Range;

/// How to choose among several matching places for a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Places {
    /// The first one after the previous hunk: the author of the patch is assumed to know the file.
    First,
    /// Only a unique one.
    Only,
}

/// A hunk that fits nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// The line after `@@` is not in the file.
    Context { at: usize, line: String },
    /// Its lines are not in the file, though the first few may match somewhere.
    Lines {
        at: usize,
        /// The first differing line of the file: its number, its text, the expected text.
        differs: Option<(usize, String, String)>,
        /// Whether the hunk must match at the end of the file.
        at_end: bool,
    },
    /// Several places match.
    Several { at: usize, lines: Vec<usize> },
    /// No line of it says where it belongs.
    Nowhere { at: usize },
}

/// The content after all hunks, which must be in file order.
pub(super) fn update(content: &[u8], hunks: &[Hunk], places: Places) -> Result<Vec<u8>, Misfit> {
    let text = Text::of(content);
    let mut lines: Vec<&[u8]> = Vec::with_capacity(text.lines.len());
    let mut done = 0;
    for hunk in hunks {
        let place = place(&text, hunk, done, places)?;
        lines.extend(text.lines.get(done..place.start).unwrap_or_default());
        let mut own = place.start;
        for line in &hunk.lines {
            match line {
                Line::Add(new) => lines.push(new.as_bytes()),
                // Kept lines are copied from the file, which may differ in whitespace.
                Line::Keep(_) if own < place.end => {
                    lines.extend(text.lines.get(own));
                    own += 1;
                }
                Line::Remove(_) => own += 1,
                Line::Keep(_) => {}
            }
        }
        done = place.end;
    }
    lines.extend(text.lines.get(done..).unwrap_or_default());
    Ok(text.with(&lines))
}

/// The lines of the file that a hunk matches.
fn place(text: &Text<'_>, hunk: &Hunk, done: usize, places: Places) -> Result<Range<usize>, Misfit> {
    let mut from = done;
    for context in &hunk.contexts {
        let found = find(text, &[context], from, false);
        let Some(first) = found.first() else {
            return Err(Misfit::Context {
                at: hunk.at,
                line: context.clone(),
            });
        };
        only(hunk, &found, places)?;
        from = first + 1;
    }
    let mut old: Vec<&str> = hunk.lines.iter().filter_map(Line::old).collect();
    if old.is_empty() {
        return match places {
            _ if !hunk.contexts.is_empty() && !hunk.at_end => Ok(from..from),
            Places::Only => Err(Misfit::Nowhere { at: hunk.at }),
            Places::First => Ok(text.lines.len()..text.lines.len()),
        };
    }
    let wanted = old.clone();
    // Trailing blank lines of a hunk are often only a separator from the next part of the patch.
    let is_blank = |line: &&Line| matches!(line, Line::Keep(text) if text.is_empty());
    let mut blanks = hunk.lines.iter().rev().take_while(is_blank).count();
    loop {
        let found = find(text, &old, from, hunk.at_end);
        if let Some(first) = found.first() {
            only(hunk, &found, places)?;
            return Ok(*first..*first + old.len());
        }
        if blanks == 0 || old.len() == 1 {
            return Err(Misfit::Lines {
                at: hunk.at,
                differs: nearest(text, &wanted, from),
                at_end: hunk.at_end,
            });
        }
        blanks -= 1;
        old.pop();
    }
}

fn only(hunk: &Hunk, found: &[usize], places: Places) -> Result<(), Misfit> {
    if places == Places::First || found.len() < 2 {
        return Ok(());
    }
    Err(Misfit::Several {
        at: hunk.at,
        lines: found.iter().map(|at| at + 1).collect(),
    })
}

/// Where the lines occur, by the strictest comparison that finds any place.
fn find(text: &Text<'_>, wanted: &[impl AsRef<str>], from: usize, at_end: bool) -> Vec<usize> {
    let Some(last) = text.lines.len().checked_sub(wanted.len()) else {
        return Vec::new();
    };
    let first = if at_end { last.max(from) } else { from };
    for how in Alike::ALL {
        let fits = |at: &usize| {
            wanted
                .iter()
                .enumerate()
                .all(|(offset, line)| text.is(at + offset, line.as_ref(), how))
        };
        let found: Vec<usize> = (first..=last).filter(fits).collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// The place with the longest match before a difference.
fn nearest(text: &Text<'_>, wanted: &[&str], from: usize) -> Option<(usize, String, String)> {
    let fits = |at: usize| {
        let same = |(offset, line): &(usize, &&str)| text.is(at + offset, line, Alike::Trimmed);
        wanted.iter().enumerate().take_while(same).count()
    };
    let (at, same) = (from..text.lines.len())
        .map(|at| (at, fits(at)))
        .filter(|(_, same)| *same > 0)
        .fold(None, |best: Option<(usize, usize)>, found| match best {
            Some(best) if best.1 >= found.1 => Some(best),
            _ => Some(found),
        })?;
    let there = text.lines.get(at + same).map_or_else(
        || "the end of the file".to_owned(),
        |line| String::from_utf8_lossy(line).into_owned(),
    );
    Some((at + same + 1, there, (*wanted.get(same)?).to_owned()))
}
