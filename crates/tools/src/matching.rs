//! Finds the text that an edit replaces. Pure; works on bytes, so that bytes outside UTF-8 stay unchanged.

use memchr::memmem;
use std::borrow::Cow;

/// An edit that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The text does not occur; perhaps a line is nearly its first one.
    NotFound {
        /// Number and text of a line that differs only in whitespace.
        near: Option<(usize, String)>,
    },
    /// The text occurs more than once.
    NotUnique {
        /// The lines on which it begins.
        lines: Vec<usize>,
    },
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

fn near(content: &[u8], old: &str) -> Option<(usize, String)> {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = squeeze(old.lines().find(|line| !line.trim().is_empty())?);
    let text = String::from_utf8_lossy(content);
    let found = text
        .lines()
        .enumerate()
        .find(|(_, line)| squeeze(line) == wanted)?;
    Some((found.0 + 1, found.1.to_owned()))
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
        let near = Some((2, "\tlet a = 1;".to_owned()));
        assert_eq!(
            done("x\n\tlet a = 1;\n", "  let a  = 1;", "y", false),
            Err(Mismatch::NotFound { near })
        );
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
