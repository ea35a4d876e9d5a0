//! Finds the text that an edit replaces. Pure; works on bytes, so that bytes outside UTF-8 stay unchanged.

use memchr::memmem;
use std::borrow::Cow;

/// How many lines that equal the first one of a text are compared further.
const MOST_STARTS: usize = 1_000;

/// An edit that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The text does not occur; perhaps one like it does.
    NotFound {
        /// The first difference of the text that is most like it.
        near: Option<Near>,
    },
    /// The text occurs more than once.
    NotUnique {
        /// The lines on which it begins.
        lines: Vec<usize>,
    },
}

/// The first line of the file that differs from the searched text, where the lines before it are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Near {
    /// Its number.
    pub(crate) line: usize,
    /// Its text.
    pub(crate) text: String,
    /// The line of the searched text; `None`: it differs in whitespace only.
    pub(crate) wanted: Option<String>,
}

/// The content with `old` replaced by `new`, and the number of replacements. In a file whose lines all end with CR LF,
/// line ends in `old` and `new` match as CR LF.
pub(crate) fn replace(content: &[u8], old: &str, new: &str, all: bool) -> Result<(Vec<u8>, usize), Mismatch> {
    let crlf = ends_lines_with_crlf(content);
    let (old, new) = (with_line_ends(old, crlf), with_line_ends(new, crlf));
    let found: Vec<usize> = memmem::find_iter(content, old.as_bytes()).collect();
    if found.is_empty() {
        return Err(Mismatch::NotFound {
            near: near(content, &old),
        });
    }
    if found.len() > 1 && !all {
        let line = |at: &usize| 1 + content.iter().take(*at).filter(|byte| **byte == b'\n').count();
        return Err(Mismatch::NotUnique {
            lines: found.iter().map(line).collect(),
        });
    }
    let mut changed = Vec::with_capacity(content.len() + new.len());
    let mut from = 0;
    for at in &found {
        changed.extend_from_slice(content.get(from..*at).unwrap_or_default());
        changed.extend_from_slice(new.as_bytes());
        from = at + old.len();
    }
    changed.extend_from_slice(content.get(from..).unwrap_or_default());
    Ok((changed, found.len()))
}

/// The byte order mark of UTF-8.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Whether every line ends with CR LF.
pub(crate) fn ends_lines_with_crlf(content: &[u8]) -> bool {
    let lf = memchr::memchr_iter(b'\n', content).count();
    lf > 0 && memmem::find_iter(content, b"\r\n").count() == lf
}

fn with_line_ends(text: &str, crlf: bool) -> Cow<'_, str> {
    if crlf && text.contains('\n') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
    } else {
        Cow::Borrowed(text)
    }
}

fn near(content: &[u8], old: &str) -> Option<Near> {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<(&str, String)> = old
        .lines()
        .skip_while(|line| line.trim().is_empty())
        .map(|line| (line, squeeze(line)))
        .collect();
    let first = &wanted.first()?.1;
    let text = String::from_utf8_lossy(content);
    let lines: Vec<&str> = text.lines().collect();
    let alike = |start: usize| {
        let below = lines.iter().skip(start).zip(&wanted);
        below
            .take_while(|(line, (_, wanted))| squeeze(line) == *wanted)
            .count()
    };
    let starts =
        (0..lines.len()).filter(|start| lines.get(*start).is_some_and(|line| squeeze(line) == *first));
    let (start, same) = starts
        .take(MOST_STARTS)
        .map(|start| (start, alike(start)))
        .reduce(|best, other| if other.1 > best.1 { other } else { best })?;
    let near = |at: usize, line: &str, wanted: Option<String>| Near {
        line: start + at + 1,
        text: line.to_owned(),
        wanted,
    };
    let pairs = || lines.iter().skip(start).zip(&wanted).enumerate();
    let spaced = pairs()
        .take(same)
        .find(|(_, (line, (wanted, _)))| *line != wanted);
    match spaced {
        Some((at, (line, _))) => Some(near(at, line, None)),
        None => pairs()
            .nth(same)
            .map(|(at, (line, (wanted, _)))| near(at, line, Some((*wanted).to_owned()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(content: &str, old: &str, new: &str, all: bool) -> Result<(String, usize), Mismatch> {
        replace(content.as_bytes(), old, new, all)
            .map(|(bytes, count)| (String::from_utf8(bytes).unwrap(), count))
    }

    #[test]
    fn several_occurrences_are_replaced_only_on_request() {
        assert_eq!(done("a b c", "b", "x", false), Ok(("a x c".to_owned(), 1)));
        assert_eq!(
            done("a\nb\na", "a", "x", false),
            Err(Mismatch::NotUnique { lines: vec![1, 3] })
        );
        assert_eq!(done("a\nb\na", "a", "x", true), Ok(("x\nb\nx".to_owned(), 2)));
    }

    #[test]
    fn a_line_that_differs_only_in_whitespace_is_named() {
        let near = |line, text: &str, wanted: Option<&str>| {
            let (text, wanted) = (text.to_owned(), wanted.map(str::to_owned));
            Err(Mismatch::NotFound {
                near: Some(Near { line, text, wanted }),
            })
        };
        for (content, old, expected) in [
            (
                "x\n\tlet a = 1;\n",
                "  let a  = 1;",
                near(2, "\tlet a = 1;", None),
            ),
            // The first line is equal: the one that differs is named.
            ("a\n\tb\nc\n", "a\n  b\n", near(2, "\tb", None)),
            ("a\nb\nc\n", "a\nB\n", near(2, "b", Some("B"))),
            ("a\nx\na\nb\nc\n", "a\nb\nC\n", near(5, "c", Some("C"))),
            ("a\nb", "\na\nb\nc", Err(Mismatch::NotFound { near: None })),
        ] {
            assert_eq!(done(content, old, "y", false), expected, "{old:?}");
        }
        assert_eq!(done("x", "y", "z", false), Err(Mismatch::NotFound { near: None }));
    }

    #[test]
    fn crlf_and_bom_are_preserved() {
        assert_eq!(
            done("\u{feff}a\r\nb\r\nc\r\n", "a\nb", "a\nB\nB", false),
            Ok(("\u{feff}a\r\nB\r\nB\r\nc\r\n".to_owned(), 1))
        );
        assert_eq!(
            done("a\r\nb\nc", "b", "x\ny", false),
            Ok(("a\r\nx\ny\nc".to_owned(), 1)),
            "mixed: as given"
        );
    }

    #[test]
    fn bytes_that_are_not_utf8_are_preserved() {
        assert_eq!(
            replace(b"\xff a \xfe", "a", "b", false),
            Ok((b"\xff b \xfe".to_vec(), 1))
        );
    }
}
