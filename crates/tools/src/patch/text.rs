//! A file as lines that keeps its bytes, its line ends and its byte order mark.

use crate::matching::{BOM, ends_lines_with_crlf};
use std::cell::OnceCell;

/// The lines of a file, without their ends.
pub(super) struct Text<'a> {
    pub(super) lines: Vec<&'a [u8]>,
    bom: bool,
    crlf: bool,
    /// Whether the last line has no end.
    open: bool,
    /// The lines with typographic characters and outer white space normalized.
    plain: OnceCell<Vec<String>>,
}

/// How much two lines may differ and still match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alike {
    /// Not at all.
    Exactly,
    /// In trailing white space.
    UpToTheEnd,
    /// In leading and trailing white space.
    Trimmed,
    /// Also in typographic variants of dashes, quotes and spaces.
    Plain,
}

impl Alike {
    pub(super) const ALL: [Self; 4] = [Self::Exactly, Self::UpToTheEnd, Self::Trimmed, Self::Plain];
}

impl<'a> Text<'a> {
    pub(super) fn of(content: &'a [u8]) -> Self {
        let crlf = ends_lines_with_crlf(content);
        let body = content.strip_prefix(BOM);
        let bom = body.is_some();
        let body = body.unwrap_or(content);
        let body = body.strip_suffix(b"\n").unwrap_or(body);
        let ended = |line: &'a [u8]| {
            if crlf {
                line.strip_suffix(b"\r").unwrap_or(line)
            } else {
                line
            }
        };
        let lines = if content.is_empty() {
            Vec::new()
        } else {
            body.split(|byte| *byte == b'\n').map(ended).collect()
        };
        Self {
            lines,
            bom,
            crlf,
            open: !content.is_empty() && !content.ends_with(b"\n"),
            plain: OnceCell::new(),
        }
    }

    /// Whether a line of the file matches this one.
    pub(super) fn is(&self, at: usize, line: &str, how: Alike) -> bool {
        let Some(own) = self.lines.get(at) else {
            return false;
        };
        let line = line.as_bytes();
        match how {
            Alike::Exactly => *own == line,
            Alike::UpToTheEnd => own.trim_ascii_end() == line.trim_ascii_end(),
            Alike::Trimmed => own.trim_ascii() == line.trim_ascii(),
            Alike::Plain => {
                let plain = self
                    .plain
                    .get_or_init(|| self.lines.iter().map(|line| plain(line)).collect());
                plain.get(at).is_some_and(|own| *own == self::plain(line))
            }
        }
    }

    /// A content made of other lines, with this file's line ends. The last line stays open if it is this file's, and was open.
    pub(super) fn with(&self, lines: &[&[u8]]) -> Vec<u8> {
        let mut content = Vec::new();
        if self.bom {
            content.extend_from_slice(BOM);
        }
        let end: &[u8] = if self.crlf { b"\r\n" } else { b"\n" };
        for line in lines {
            content.extend_from_slice(line);
            content.extend_from_slice(end);
        }
        // The same line, not an equal one: it lies at the same place in memory.
        let last = lines.last().zip(self.lines.last());
        if self.open && last.is_some_and(|(new, old)| std::ptr::eq(*new, *old)) {
            content.truncate(content.len() - end.len());
        }
        content
    }
}

fn plain(line: &[u8]) -> String {
    let one = |c: char| match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    };
    let text: String = String::from_utf8_lossy(line).chars().map(one).collect();
    text.trim().to_owned()
}
