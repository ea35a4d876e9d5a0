//! Finds a page of a file that is too large to be held in memory.

use memchr::memchr_iter;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

/// Line ends are counted up to here; a search in such a file is for other programs.
const MOST_BYTES: u64 = 1 << 30;
const CHUNK: usize = 256 << 10;

/// The number of lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    /// So many.
    Exactly(usize),
    /// The file was not read to its end.
    MoreThan(usize),
}

impl Lines {
    /// Whether there is no line with this number.
    pub(crate) const fn end_before(self, line: usize) -> bool {
        match self {
            Self::Exactly(lines) => line > lines,
            Self::MoreThan(_) => false,
        }
    }

    /// As many as were counted.
    pub(crate) const fn known(self) -> usize {
        match self {
            Self::Exactly(lines) | Self::MoreThan(lines) => lines,
        }
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(lines) => write!(f, "{lines}"),
            Self::MoreThan(lines) => write!(f, "more than {lines}"),
        }
    }
}

/// A part of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// It begins with a whole line, unless the wanted line is beyond what was counted.
    pub(crate) content: Vec<u8>,
    /// The number of lines before it.
    pub(crate) before: usize,
    /// Of the whole file.
    pub(crate) lines: Lines,
}

/// The part that begins with the line `first`, counted from 1, of at most `max` bytes.
pub(crate) fn part(file: &mut (impl Read + Seek), first: usize, max: usize) -> io::Result<Part> {
    file.seek(SeekFrom::Start(0))?;
    let mut counted = file.by_ref().take(MOST_BYTES);
    let (mut chunk, mut ends, mut read, mut start) = (vec![0; CHUNK], 0, 0_u64, (first <= 1).then_some(0));
    let mut open = false;
    loop {
        let length = counted.read(&mut chunk)?;
        let Some(bytes) = chunk.get(..length).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        for at in memchr_iter(b'\n', bytes) {
            ends += 1;
            if ends + 1 == first {
                start = Some(read + at as u64 + 1);
            }
        }
        read += length as u64;
        open = !bytes.ends_with(b"\n");
    }
    let whole = read < MOST_BYTES || file.read(&mut [0])? == 0;
    let lines = if whole {
        Lines::Exactly(ends + usize::from(open))
    } else {
        Lines::MoreThan(ends)
    };
    let before = first.saturating_sub(1).min(ends);
    let mut content = Vec::new();
    if let Some(start) = start {
        file.seek(SeekFrom::Start(start))?;
        file.by_ref().take(max as u64).read_to_end(&mut content)?;
    }
    Ok(Part {
        content,
        before,
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    proptest! {
        #[test]
        fn a_part_begins_with_its_line(text in "[ab\n]{0,60}", first in 1_usize..20, max in 1_usize..20) {
            let found = part(&mut Cursor::new(text.as_bytes()), first, max).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            prop_assert_eq!(found.lines, Lines::Exactly(lines.len()));
            if first <= lines.len() {
                let rest: String = text.split_inclusive('\n').skip(first - 1).collect();
                let rest = rest.as_bytes();
                prop_assert_eq!(&found.content[..], rest.get(..max).unwrap_or(rest));
                prop_assert_eq!(found.before, first - 1);
            }
        }
    }

    #[test]
    fn lines_are_counted_over_chunks() {
        let text = "line\n".repeat(CHUNK);
        let found = part(&mut Cursor::new(text.as_bytes()), CHUNK, 100).unwrap();
        let expected = Part {
            content: b"line\n".to_vec(),
            before: CHUNK - 1,
            lines: Lines::Exactly(CHUNK),
        };
        assert_eq!(found, expected);
        assert!(!Lines::MoreThan(5).end_before(9));
        assert_eq!(Lines::MoreThan(5).to_string(), "more than 5");
    }
}
