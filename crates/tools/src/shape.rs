//! Cuts texts to the size of a result. Pure.

use std::borrow::Cow;

/// The longest line that is shown whole; longer ones are cut.
pub(crate) const LINE_CHARS: usize = 2_000;

/// A line, cut when it is very long.
pub(crate) fn cut_line(line: &str, chars: usize) -> Cow<'_, str> {
    match line.char_indices().nth(chars) {
        None => Cow::Borrowed(line),
        Some((at, _)) => {
            let rest = line.get(at..).unwrap_or_default().chars().count();
            Cow::Owned(format!(
                "{} ... [{rest} more characters]",
                line.get(..at).unwrap_or_default()
            ))
        }
    }
}

/// The part of a long line around its bytes from `at` on, so that a match which stands far behind is seen.
pub(crate) fn excerpt(line: &str, at: usize, chars: usize) -> Cow<'_, str> {
    let before = line.get(..line.floor_char_boundary(at)).unwrap_or(line);
    let skip = before.chars().count().saturating_sub(chars / 4);
    if skip == 0 || line.chars().nth(chars).is_none() {
        return cut_line(line, chars);
    }
    let start = line.char_indices().nth(skip).map_or(line.len(), |(at, _)| at);
    let shown = cut_line(line.get(start..).unwrap_or_default(), chars);
    Cow::Owned(format!("[{skip} characters] ... {shown}"))
}

/// The leading lines that fit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The lines that fit, joined.
    pub(crate) text: String,
    /// Their number.
    pub(crate) lines: usize,
    /// Whether all fit.
    pub(crate) complete: bool,
}

/// As many leading lines as fit; at least one, so that paging makes progress.
pub(crate) fn page<'a>(
    lines: impl IntoIterator<Item = Cow<'a, str>>,
    max_lines: usize,
    max_bytes: usize,
) -> Page {
    let mut page = Page {
        text: String::new(),
        lines: 0,
        complete: true,
    };
    for line in lines {
        let too_long = page.lines > 0 && page.text.len() + line.len() + 1 > max_bytes;
        if page.lines >= max_lines || too_long {
            page.complete = false;
            break;
        }
        page.text.push_str(&line);
        page.text.push('\n');
        page.lines += 1;
    }
    page
}

/// The beginning and the end of a text that is too long, cut at line ends if there are some near. `skipped` bytes are
/// missing between `head` and `tail`.
pub(crate) fn ends(
    head: &str,
    tail: &str,
    skipped: u64,
    max_lines: usize,
    max_bytes: usize,
) -> Option<(String, String)> {
    let lines = head.lines().count() + tail.lines().count();
    if skipped == 0 && lines <= max_lines && head.len() + tail.len() <= max_bytes {
        return None;
    }
    let whole;
    let (head, tail) = if skipped == 0 {
        // Nothing is missing between them, so each end may reach into the other half.
        whole = format!("{head}{tail}");
        (whole.as_str(), whole.as_str())
    } else {
        (head, tail)
    };
    Some((
        first(head, max_lines.div_ceil(2), max_bytes / 2),
        last(tail, max_lines / 2, max_bytes / 2),
    ))
}

/// Tells how much of an output is missing between its two ends, and at which line it begins.
pub(crate) fn left_out(first: &str, last: &str, lines: u64, bytes: u64) -> String {
    let count = |text: &str| text.matches('\n').count() as u64;
    let missing = bytes.saturating_sub((first.len() + last.len()) as u64);
    let gone = lines.saturating_sub(count(first) + last.lines().count() as u64);
    format!(
        "[... {missing} of {bytes} bytes omitted: {gone} of {lines} lines, starting at line {} ...]",
        count(first) + 1
    )
}

fn first(text: &str, max_lines: usize, max_bytes: usize) -> String {
    let fits = text
        .get(..text.floor_char_boundary(max_bytes))
        .unwrap_or_default();
    let end = fits
        .match_indices('\n')
        .take(max_lines)
        .last()
        .map(|(at, _)| at + 1);
    let by_lines = fits.match_indices('\n').count() >= max_lines;
    // A cut line is better than a lost line, unless there are enough whole ones.
    let end = end
        .filter(|end| by_lines || *end * 2 > fits.len())
        .unwrap_or(fits.len());
    fits.get(..end).unwrap_or_default().to_owned()
}

fn last(text: &str, max_lines: usize, max_bytes: usize) -> String {
    let fits = text
        .get(text.ceil_char_boundary(text.len().saturating_sub(max_bytes))..)
        .unwrap_or_default();
    let body = fits.strip_suffix('\n').unwrap_or(fits);
    let starts: Vec<usize> = body
        .rmatch_indices('\n')
        .map(|(at, _)| at + 1)
        .take(max_lines)
        .collect();
    let start = if starts.len() >= max_lines {
        starts.last().copied()
    } else {
        // The first line is incomplete; leave it out if that costs little.
        starts
            .last()
            .copied()
            .filter(|start| *start * 2 < fits.len() && fits.len() < text.len())
    };
    fits.get(start.unwrap_or_default()..)
        .unwrap_or_default()
        .to_owned()
}

/// Whether a file only says what Git LFS would put in its place: a version, an identifier and a size, in at most 1,024 bytes.
pub(crate) fn is_lfs_pointer(content: &[u8]) -> bool {
    const BEGIN: &[u8] = b"version https://git-lfs.github.com/spec/";
    const HAS: &[u8] = b"\noid ";
    content.len() <= 1024
        && content.starts_with(BEGIN)
        && content.windows(HAS.len()).any(|found| found == HAS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&'static str]) -> Vec<Cow<'static, str>> {
        texts.iter().map(|text| Cow::Borrowed(*text)).collect()
    }

    #[test]
    fn a_page_ends_at_its_limits_exactly() {
        let text = ["aa", "bb", "cc"];
        assert_eq!(
            page(lines(&text), 3, 9),
            Page {
                text: "aa\nbb\ncc\n".to_owned(),
                lines: 3,
                complete: true
            }
        );
        assert_eq!(
            page(lines(&text), 2, 9),
            Page {
                text: "aa\nbb\n".to_owned(),
                lines: 2,
                complete: false
            }
        );
        assert_eq!(
            page(lines(&text), 3, 8),
            Page {
                text: "aa\nbb\n".to_owned(),
                lines: 2,
                complete: false
            }
        );
        assert_eq!(
            page(lines(&text), 3, 1),
            Page {
                text: "aa\n".to_owned(),
                lines: 1,
                complete: false
            }
        );
    }

    #[test]
    fn a_long_line_is_cut_at_a_character_boundary() {
        assert_eq!(cut_line("abc", 3), "abc");
        assert_eq!(
            cut_line("\u{e4}\u{f6}\u{fc}x", 2),
            "\u{e4}\u{f6} ... [2 more characters]"
        );
    }

    #[test]
    fn short_output_is_not_cut() {
        assert_eq!(ends("a\nb\n", "", 0, 2, 4), None);
        assert_eq!(ends("a\nb\n", "c\n", 0, 3, 6), None);
    }

    #[test]
    fn missing_bytes_and_lines_are_counted() {
        let cut = |total: (u64, u64)| left_out("1\n2\n", "9\n10\n", total.0, total.1);
        assert_eq!(
            cut((10, 21)),
            "[... 12 of 21 bytes omitted: 6 of 10 lines, starting at line 3 ...]"
        );
        assert_eq!(
            left_out("aa", "a\n", 1, 10),
            "[... 6 of 10 bytes omitted: 0 of 1 lines, starting at line 1 ...]"
        );
    }

    #[test]
    fn too_many_lines_keep_the_first_and_the_last() {
        let text: String = (1..=10).map(|n| format!("{n}\n")).collect();
        assert_eq!(
            ends(&text, "", 0, 4, 1000),
            Some(("1\n2\n".to_owned(), "9\n10\n".to_owned()))
        );
    }

    #[test]
    fn too_many_bytes_keep_both_ends_without_splitting_characters() {
        let (head, tail) = ends(&"\u{20ac}".repeat(100), "", 0, 10, 20).unwrap();
        assert_eq!((head, tail), ("\u{20ac}".repeat(3), "\u{20ac}".repeat(3)));
        let (head, tail) = ends("aaa\nbbb\n", "yyy\nzzz\n", 5, 100, 100).unwrap();
        assert_eq!((head.as_str(), tail.as_str()), ("aaa\nbbb\n", "yyy\nzzz\n"));
    }
}
