//! Reads the lines of a chain backwards, in pages.

use crate::files::{CURRENT, open, sealed};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead as _, ErrorKind};
use std::path::Path;
use std::str::FromStr;

/// The place of a line in a chain. It stays the same when the file is set aside and compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinePosition {
    /// The number of the file, from 1.
    pub file: u64,
    /// The number of the line in it, from 1.
    pub line: u64,
}

impl fmt::Display for LinePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl FromStr for LinePosition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':');
        let place = parts.and_then(|(file, line)| {
            Some(Self {
                file: file.parse().ok()?,
                line: line.parse().ok()?,
            })
        });
        place.ok_or_else(|| format!("{text:?} is not a place in the audit files, such as 1:42"))
    }
}

/// Lines that a reader keeps, newest first.
#[derive(Debug, PartialEq, Eq)]
pub struct Newest<T> {
    /// The lines with their places.
    pub lines: Vec<(LinePosition, T)>,
    /// Older lines may exist before this place; none: there are none.
    pub before: Option<LinePosition>,
}

/// Reads the lines before `before` (none: all), newest first, and keeps up to `limit` of those that `keep` chooses. Once
/// `scan` lines have been read, it opens no older file, so a page may have fewer lines although older ones exist.
///
/// # Errors
/// A file cannot be read.
pub fn newest<T>(
    dir: &Path,
    before: Option<LinePosition>,
    (limit, scan): (usize, u64),
    mut keep: impl FnMut(&str) -> Option<T>,
) -> io::Result<Newest<T>> {
    let full = sealed(dir)?;
    let current = full.last().map_or(1, |last| last.number + 1);
    let mut files: Vec<_> = full.into_iter().map(|file| (file.number, file.path)).collect();
    files.push((current, dir.join(CURRENT)));
    let mut found = Newest {
        lines: Vec::new(),
        before: None,
    };
    let mut read = 0;
    for (number, path) in files.into_iter().rev() {
        let end = match before {
            Some(before) if number > before.file => continue,
            Some(before) if number == before.file => before.line,
            _ => u64::MAX,
        };
        if read >= scan {
            found.before = Some(LinePosition {
                file: number,
                line: u64::MAX,
            });
            return Ok(found);
        }
        let room = limit.saturating_sub(found.lines.len());
        let mut kept = VecDeque::with_capacity(room);
        let file = match open(&path) {
            // The file was set aside, compressed or deleted in the meantime; or nothing was written yet.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            file => file?,
        };
        let mut more = false;
        for (line, text) in (1..end).zip(file.lines()) {
            read += 1;
            if let Some(chosen) = keep(&text?) {
                if room == 0 {
                    more = true;
                    break;
                }
                if kept.len() == room {
                    more = true;
                    kept.pop_front();
                }
                kept.push_back((LinePosition { file: number, line }, chosen));
            }
        }
        found.lines.extend(kept.into_iter().rev());
        if more {
            found.before = found.lines.last().map(|(place, _)| *place);
            return Ok(found);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    /// Three files of four lines: the first compressed, the second full, the third current.
    fn chain() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let text = |from: u64| (from..from + 4).map(|n| format!("{n}\n")).collect::<String>();
        let first = std::fs::File::create(dir.path().join("audit-000001.jsonl.gz")).unwrap();
        let mut first = GzEncoder::new(first, Compression::default());
        first.write_all(text(1).as_bytes()).unwrap();
        first.finish().unwrap();
        std::fs::write(dir.path().join("audit-000002.jsonl"), text(5)).unwrap();
        std::fs::write(dir.path().join(CURRENT), text(9)).unwrap();
        dir
    }

    fn page(
        dir: &Path,
        before: Option<LinePosition>,
        limits: (usize, u64),
        even: bool,
    ) -> (Vec<u64>, Option<LinePosition>) {
        let keep = |line: &str| line.parse().ok().filter(|n: &u64| !even || n.is_multiple_of(2));
        let found = newest(dir, before, limits, keep).unwrap();
        (found.lines.into_iter().map(|(_, n)| n).collect(), found.before)
    }

    #[test]
    fn pages_of_any_size_give_each_line_once_and_newest_first() {
        let dir = chain();
        for even in [false, true] {
            let all: Vec<u64> = (1..=12).rev().filter(|n| !even || n % 2 == 0).collect();
            for limits in [
                (1, 99),
                (3, 99),
                (4, 99),
                (5, 99),
                (12, 99),
                (99, 99),
                (3, 1),
                (99, 5),
            ] {
                let (mut read, mut before, mut pages) = (Vec::new(), None, 0);
                loop {
                    let (lines, next) = page(dir.path(), before, limits, even);
                    assert!(lines.len() <= limits.0);
                    read.extend(lines);
                    pages += 1;
                    before = next;
                    if before.is_none() {
                        break;
                    }
                    assert!(pages < 20, "{limits:?}");
                }
                assert_eq!(read, all, "{limits:?}");
            }
        }
    }

    #[test]
    fn a_position_survives_the_rotation_of_its_file() {
        let dir = chain();
        let (lines, before) = page(dir.path(), None, (2, 99), false);
        assert_eq!(
            (lines.as_slice(), before),
            (&[12, 11][..], Some("3:3".parse().unwrap()))
        );
        let (current, third) = (dir.path().join(CURRENT), dir.path().join("audit-000003.jsonl"));
        std::fs::rename(&current, third).unwrap();
        std::fs::write(&current, "13\n").unwrap();
        assert_eq!(page(dir.path(), before, (2, 99), false).0, [10, 9]);
    }

    #[test]
    fn no_file_gives_no_line_and_an_invalid_position_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(page(dir.path(), None, (9, 99), false), (vec![], None));
        let refused = "7".parse::<LinePosition>().unwrap_err();
        assert_eq!(refused, "\"7\" is not a place in the audit files, such as 1:42");
    }
}
