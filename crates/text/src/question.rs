//! A question to a person, as lines: everything that an answer allows, with our own text kept apart from all other.
//!
//! Pure. Line mode, full-screen view and web page show the same lines. Only our own lines begin at the margin; every
//! line of untrusted text has a gutter before it, including continuation lines of a wrapped one.

use crate::visible::{Piece, lines, pieces};
use sha2::{Digest as _, Sha256};
use unicode_width::UnicodeWidthChar as _;

/// The minimum width; narrower text is unreadable.
const NARROWEST: usize = 20;
/// Columns of a gutter. Some terminals draw its bar two columns wide.
const GUTTER: usize = 5;
/// Columns of a fact's label.
const LABEL: usize = 10;
/// Digits of a hash that are shown.
const DIGITS: usize = 16;

/// The source of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Voice {
    /// Our own text.
    Ours,
    /// Our warning.
    Risk,
    /// The action to be approved.
    Content,
    /// Text from the model.
    Model,
}

/// The style of a part of a line.
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

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The text, free of terminal control characters.
    pub text: String,
    /// The style.
    pub mark: Mark,
}

/// A line of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The source of the line.
    pub voice: Voice,
    /// The parts of the line, including the gutter.
    pub spans: Vec<Span>,
}

impl Line {
    /// The line without colours.
    #[must_use]
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

/// The type of a question's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// A command line.
    Command,
    /// A change of files, as a diff.
    Change,
    /// The arguments of a call.
    Arguments,
    /// A plan.
    Plan,
    /// The model's text for a person.
    Words,
}

impl Content {
    /// The content of a question about a call of this tool, which is named by its canonical name.
    #[must_use]
    pub fn of_tool(name: &str) -> Self {
        match name {
            "Bash" | "BashStart" | "BashWrite" | "Job" => Self::Command,
            "ApplyPatch" | "Edit" | "MultiEdit" | "UndoPatch" | "Write" => Self::Change,
            _ => Self::Arguments,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Command => "the command",
            Self::Change => "the change",
            Self::Arguments => "the call",
            Self::Plan => "the plan, in the model's words",
            Self::Words => "the question, in the model's words",
        }
    }

    const fn voice(self) -> Voice {
        match self {
            Self::Command | Self::Change | Self::Arguments => Voice::Content,
            Self::Plan | Self::Words => Voice::Model,
        }
    }
}

/// A question with everything that a person needs to answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question<'a> {
    /// Our own description of the question.
    pub heading: &'a str,
    /// The risks.
    pub risks: &'a [String],
    /// Known facts: a label and its value, which may be untrusted.
    pub facts: &'a [(&'a str, String)],
    /// The content that an allow would approve.
    pub content: &'a str,
    /// The type of the content.
    pub kind: Content,
    /// The model's own description of the content.
    pub said: Option<&'a str>,
    /// The answers to choose from.
    pub choices: &'a [String],
}

impl Question<'_> {
    /// The whole question in lines of at most `width` columns. Nothing is left out; repetitions are counted.
    #[must_use]
    pub fn lines(&self, width: usize) -> Vec<Line> {
        let mut page = Page {
            width: width.max(NARROWEST),
            lines: Vec::new(),
        };
        page.ours(self.heading);
        for risk in self.risks {
            page.fact("RISK", risk, Voice::Risk);
        }
        for (label, value) in self.facts {
            page.fact(label, value, Voice::Ours);
        }
        let (bytes, count) = (self.content.len(), self.content.lines().count());
        let sum = digest(self.content);
        let sum: String = sum.chars().take(DIGITS).collect();
        page.fact(
            "size",
            &format!("{bytes} bytes in {count} lines, sha256 {sum}"),
            Voice::Ours,
        );
        page.ours(&format!("{}:", self.kind.name()));
        page.foreign(self.content, self.kind.voice(), self.kind == Content::Change);
        if let Some(said) = self.said.filter(|said| !said.trim().is_empty()) {
            page.ours("the model's description, which is not verified:");
            page.foreign(said, Voice::Model, false);
        }
        for (index, choice) in self.choices.iter().enumerate() {
            page.ours(&format!("choice {}:", index + 1));
            page.foreign(choice, Voice::Model, false);
        }
        page.ours(&format!("end of {}", self.kind.name()));
        page.lines
    }
}

/// The SHA-256 of a question's content, in hexadecimal.
#[must_use]
pub fn digest(content: &str) -> String {
    Sha256::digest(content.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

struct Page {
    width: usize,
    lines: Vec<Line>,
}

impl Page {
    /// A line of our own text. It wraps, because cutting it would hide the rest.
    fn ours(&mut self, text: &str) {
        let pieces = pieces(&text.replace('\n', " "));
        let indent = Span {
            text: "    ".to_owned(),
            mark: Mark::Plain,
        };
        self.wrapped(&pieces, Voice::Ours, Mark::Plain, &[], &[indent]);
    }

    /// A label with its value. A multi-line value could pass for the next fact, so it gets the gutter.
    fn fact(&mut self, label: &str, value: &str, voice: Voice) {
        let mark = if voice == Voice::Risk {
            Mark::Risk
        } else {
            Mark::Plain
        };
        let label = Span {
            text: format!("  {label:<width$}", width = LABEL - 2),
            mark: if voice == Voice::Risk {
                Mark::Risk
            } else {
                Mark::Label
            },
        };
        let all = lines(value);
        if let [one] = all.as_slice()
            && columns(one) + LABEL <= self.width
        {
            return self.wrapped(one, voice, mark, &[label], &[]);
        }
        self.lines.push(Line {
            voice,
            spans: vec![label],
        });
        for line in &all {
            self.wrapped(line, voice, mark, &gutter('│'), &gutter('┆'));
        }
    }

    fn foreign(&mut self, text: &str, voice: Voice, change: bool) {
        let (first, next) = match voice {
            Voice::Model => (gutter('»'), gutter('›')),
            Voice::Ours | Voice::Risk | Voice::Content => (gutter('│'), gutter('┆')),
        };
        for line in lines(text) {
            let begins = line.first().filter(|piece| !piece.mark);
            let begins = begins.and_then(|piece| piece.text.chars().next());
            let mark = match begins {
                Some('+') if change => Mark::Added,
                Some('-') if change => Mark::Removed,
                _ => Mark::Plain,
            };
            self.wrapped(&line, voice, mark, &first, &next);
        }
    }

    fn wrapped(&mut self, pieces: &[Piece], voice: Voice, mark: Mark, first: &[Span], next: &[Span]) {
        let room = self.width.saturating_sub(GUTTER.max(taken(first)));
        let (mut spans, mut left) = (first.to_vec(), room);
        for piece in pieces {
            let mark = if piece.mark { Mark::Hidden } else { mark };
            // Keeps a mark on one line if possible.
            let whole = piece
                .mark
                .then(|| piece.text.chars().map(width_of).sum::<usize>());
            if whole.is_some_and(|whole| whole > left && whole <= room) {
                self.lines.push(Line {
                    voice,
                    spans: std::mem::replace(&mut spans, next.to_vec()),
                });
                left = room;
            }
            for c in piece.text.chars() {
                if width_of(c) > left {
                    self.lines.push(Line {
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
        self.lines.push(Line { voice, spans });
    }
}

fn gutter(bar: char) -> Vec<Span> {
    vec![Span {
        text: format!("  {bar} "),
        mark: Mark::Gutter,
    }]
}

fn taken(spans: &[Span]) -> usize {
    spans
        .iter()
        .flat_map(|span| span.text.chars())
        .map(width_of)
        .sum()
}

fn columns(pieces: &[Piece]) -> usize {
    pieces
        .iter()
        .flat_map(|piece| piece.text.chars())
        .map(width_of)
        .sum()
}

/// The most columns that a terminal may use for a character: a line wrapped by the terminal would lack the gutter.
fn width_of(c: char) -> usize {
    c.width_cjk().unwrap_or(2).max(1)
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
