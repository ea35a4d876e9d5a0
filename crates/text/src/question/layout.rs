//! Typed lines as rows of a terminal.

use agentd_protocol::{QuestionLine, QuestionMark, QuestionSpan, QuestionVoice as Voice};
use unicode_width::UnicodeWidthChar as _;

/// The minimum width; narrower text is unreadable.
pub(super) const NARROWEST: usize = 20;
/// Columns of a gutter. Some terminals draw its bar two columns wide.
const GUTTER: usize = 5;
/// Columns of a fact's label.
const LABEL: usize = 10;

/// The style of a part of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// No style.
    Plain,
    /// The name of a fact.
    Label,
    /// A warning.
    Risk,
    /// The gutter that marks untrusted text.
    Gutter,
    /// A placeholder for an invisible character.
    Hidden,
    /// A line that a diff adds.
    Added,
    /// A line that a diff removes.
    Removed,
}

/// A part of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The text, free of terminal control characters.
    pub text: String,
    /// The style.
    pub mark: Mark,
}

/// A row of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The source of the row.
    pub voice: Voice,
    /// The parts of the row, including the gutter.
    pub spans: Vec<Span>,
}

impl Line {
    /// The row without colours.
    #[must_use]
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

/// The lines of a question in rows of at most `width` columns. Nothing is left out.
#[must_use]
pub fn laid_out(lines: &[QuestionLine], width: usize) -> Vec<Line> {
    let mut page = Rows {
        width: width.max(NARROWEST),
        rows: Vec::new(),
    };
    for line in lines {
        match &line.label {
            Some(label) => page.fact(label, line),
            None if line.quoted => page.quoted(line),
            // It wraps, because cutting it would hide the rest.
            None => page.wrapped(line, &[], &[span("    ", Mark::Plain)]),
        }
    }
    page.rows
}

struct Rows {
    width: usize,
    rows: Vec<Line>,
}

impl Rows {
    /// A label with its value, which gets the gutter if it needs more than one row.
    fn fact(&mut self, label: &str, line: &QuestionLine) {
        let mark = if line.voice == Voice::Risk {
            Mark::Risk
        } else {
            Mark::Label
        };
        let label = span(&format!("  {label:<width$}", width = LABEL - 2), mark);
        if columns(line) + LABEL <= self.width {
            return self.wrapped(line, &[label], &[]);
        }
        self.rows.push(Line {
            voice: line.voice,
            spans: vec![label],
        });
        self.quoted(line);
    }

    fn quoted(&mut self, line: &QuestionLine) {
        let (first, next) = match line.voice {
            Voice::Model => ('»', '›'),
            Voice::Ours | Voice::Risk | Voice::Content => ('│', '┆'),
        };
        self.wrapped(line, &[gutter(first)], &[gutter(next)]);
    }

    fn wrapped(&mut self, line: &QuestionLine, first: &[Span], next: &[Span]) {
        let voice = line.voice;
        let room = self.width.saturating_sub(GUTTER.max(taken(first)));
        let (mut spans, mut left) = (first.to_vec(), room);
        for piece in &line.spans {
            let mark = style(voice, piece);
            // Keeps a mark on one row if possible.
            let whole = (mark == Mark::Hidden).then(|| piece.text.chars().map(width_of).sum::<usize>());
            if whole.is_some_and(|whole| whole > left && whole <= room) {
                self.rows.push(Line {
                    voice,
                    spans: std::mem::replace(&mut spans, next.to_vec()),
                });
                left = room;
            }
            for c in piece.text.chars() {
                if width_of(c) > left {
                    self.rows.push(Line {
                        voice,
                        spans: std::mem::replace(&mut spans, next.to_vec()),
                    });
                    left = room;
                }
                left = left.saturating_sub(width_of(c));
                match spans.last_mut() {
                    Some(last) if last.mark == mark => last.text.push(c),
                    Some(_) | None => spans.push(Span {
                        text: c.to_string(),
                        mark,
                    }),
                }
            }
        }
        self.rows.push(Line { voice, spans });
    }
}

fn style(voice: Voice, piece: &QuestionSpan) -> Mark {
    match piece.mark {
        Some(QuestionMark::Hidden) => Mark::Hidden,
        Some(QuestionMark::Added) => Mark::Added,
        Some(QuestionMark::Removed) => Mark::Removed,
        None if voice == Voice::Risk => Mark::Risk,
        None => Mark::Plain,
    }
}

fn span(text: &str, mark: Mark) -> Span {
    Span {
        text: text.to_owned(),
        mark,
    }
}

fn gutter(bar: char) -> Span {
    span(&format!("  {bar} "), Mark::Gutter)
}

fn taken(spans: &[Span]) -> usize {
    let chars = spans.iter().flat_map(|span| span.text.chars());
    chars.map(width_of).sum()
}

fn columns(line: &QuestionLine) -> usize {
    let chars = line.spans.iter().flat_map(|span| span.text.chars());
    chars.map(width_of).sum()
}

/// The most columns that a terminal may use for a character: a line wrapped by the terminal would lack the gutter.
pub(super) fn width_of(c: char) -> usize {
    c.width_cjk().unwrap_or(2).max(1)
}
