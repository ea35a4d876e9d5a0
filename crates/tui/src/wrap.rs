//! Breaks styled text into lines of a given width, at spaces where possible.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar as _;

const TAB: usize = 4;

/// The columns of a text.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The text in at most `most` columns; a longer one ends in `…`.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut left = most.saturating_sub(1);
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if width > left {
            break;
        }
        left -= width;
        kept.push(c);
    }
    if most > 0 {
        kept.push('…');
    }
    kept
}

/// A line under construction.
struct Row {
    spans: Vec<Span<'static>>,
    used: usize,
    /// The span, byte and column behind the last space: where the line may break.
    space: Option<(usize, usize, usize)>,
    /// Columns of the prefix.
    prefix: usize,
}

impl Row {
    fn new(prefix: &[Span<'static>]) -> Self {
        let used = prefix.iter().map(|span| columns(&span.content)).sum();
        Self {
            spans: prefix.to_vec(),
            used,
            space: None,
            prefix: used,
        }
    }

    fn push(&mut self, c: char, style: Style) {
        match self.spans.last_mut() {
            Some(last) if last.style == style && self.used > self.prefix => {
                last.content.to_mut().push(c);
            }
            Some(_) | None => self.spans.push(Span::styled(c.to_string(), style)),
        }
        self.used += c.width().unwrap_or(0);
        if c == ' ' {
            let at = self.spans.len();
            let byte = self.spans.last().map_or(0, |span| span.content.len());
            self.space = Some((at, byte, self.used));
        }
    }

    /// Takes off what stands behind the last space.
    fn split(&mut self) -> Vec<Span<'static>> {
        let Some((at, byte, _)) = self.space.take() else {
            return Vec::new();
        };
        let mut rest = self.spans.split_off(at);
        if let Some(last) = self.spans.last_mut() {
            let text = last.content.to_mut();
            let tail = text.split_off(byte.min(text.len()));
            if !tail.is_empty() {
                rest.insert(0, Span::styled(tail, last.style));
            }
        }
        rest
    }
}

/// The text in lines of at most `width` columns. `first` begins the first line and `next` each further one.
pub(crate) fn wrap(
    spans: &[Span<'_>],
    width: usize,
    first: &[Span<'static>],
    next: &[Span<'static>],
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut row = Row::new(first);
    let width = width.max(row.prefix + 2);
    for span in spans {
        for c in span.content.chars() {
            if c == '\n' {
                lines.push(Line::from(std::mem::replace(&mut row, Row::new(next)).spans));
                continue;
            }
            let (c, times) = if c == '\t' { (' ', TAB) } else { (c, 1) };
            for _ in 0..times {
                let wide = c.width().unwrap_or(0);
                if row.used + wide > width {
                    if c == ' ' {
                        // A space at the edge is the break.
                        lines.push(Line::from(std::mem::replace(&mut row, Row::new(next)).spans));
                        continue;
                    }
                    let rest = row.split();
                    lines.push(Line::from(std::mem::replace(&mut row, Row::new(next)).spans));
                    for span in rest {
                        for c in span.content.chars() {
                            row.push(c, span.style);
                        }
                    }
                }
                row.push(c, span.style);
            }
        }
    }
    lines.push(Line::from(row.spans));
    lines
}

/// Lines of code or output: broken anywhere, without regard to words.
pub(crate) fn chop(text: &[Span<'_>], width: usize, prefix: &[Span<'static>]) -> Vec<Line<'static>> {
    let taken: usize = prefix.iter().map(|span| columns(&span.content)).sum();
    let room = width.saturating_sub(taken).max(1);
    let mut lines = Vec::new();
    let mut row = Row::new(prefix);
    let edge = row.prefix + room;
    for span in text {
        for c in span.content.chars() {
            let (c, times) = if c == '\t' { (' ', TAB) } else { (c, 1) };
            for _ in 0..times {
                if row.used + c.width().unwrap_or(0) > edge {
                    lines.push(Line::from(std::mem::replace(&mut row, Row::new(prefix)).spans));
                }
                row.push(c, span.style);
            }
        }
    }
    lines.push(Line::from(row.spans));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_anywhere() {
        let wrapped = |text: &str, width| texts(&wrap(&[Span::raw(text.to_owned())], width, &[], &[]));
        assert_eq!(wrapped("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("a\n\nb", 9), ["a", "", "b"]);
        assert_eq!(wrapped("", 9), [""]);
        // A wide character needs two columns.
        assert_eq!(wrapped("結果結果", 5), ["結果", "結果"]);
    }

    #[test]
    fn styles_survive_a_break_and_prefixes_indent() {
        let (bold, plain) = (Style::new().bold(), Style::new());
        let spans = [Span::styled("plain ", plain), Span::styled("bold words", bold)];
        let lines = wrap(&spans, 12, &[Span::raw("- ")], &[Span::raw("  ")]);
        assert_eq!(texts(&lines), ["- plain bold", "  words"]);
        assert!(lines[1].spans.iter().skip(1).all(|span| span.style == bold));
    }

    #[test]
    fn code_keeps_its_spaces_and_a_cut_text_says_so() {
        let lines = chop(&[Span::raw("a  b\tc")], 5, &[Span::raw("|")]);
        assert_eq!(texts(&lines), ["|a  b", "|    ", "|c"]);
        assert_eq!(
            (cut("結果結果", 5), cut("short", 5)),
            ("結果…".into(), "short".into())
        );
    }
}
