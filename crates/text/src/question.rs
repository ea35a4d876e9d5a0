//! A question to a person, as lines: all of what an answer allows, with our own words apart from everybody else's.
//!
//! Pure. A line mode, a full-screen view and a page draw the same lines. Only our own lines begin at the margin; each
//! line of untrusted text has a gutter before it, also where a long one was wrapped here.

use crate::visible::{Piece, lines, pieces};
use sha2::{Digest as _, Sha256};
use unicode_width::UnicodeWidthChar as _;

/// Narrower than this nothing can be read.
const NARROWEST: usize = 20;
/// Columns of a gutter. Some terminals draw its bar over two.
const GUTTER: usize = 5;
/// Columns of a fact's label.
const LABEL: usize = 10;
/// Digits of a hash that people are shown.
const DIGITS: usize = 16;

/// Who speaks in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Voice {
    /// We do.
    Ours,
    /// We warn.
    Risk,
    /// It is what would be done.
    Content,
    /// The model does.
    Model,
}

/// How a part of a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// As it is.
    Plain,
    /// The name of a fact.
    Label,
    /// A warning.
    Risk,
    /// What tells untrusted text from ours.
    Gutter,
    /// What stands for something that cannot be seen.
    Hidden,
    /// A line that a change adds.
    Added,
    /// A line that a change takes away.
    Removed,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// What is drawn. Nothing in it is obeyed by a terminal.
    pub text: String,
    /// How.
    pub mark: Mark,
}

/// A line of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Who speaks.
    pub voice: Voice,
    /// Its parts, the gutter among them.
    pub spans: Vec<Span>,
}

impl Line {
    /// The line without colours.
    #[must_use]
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

/// What a question is about.
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
    /// Words of the model for a person.
    Words,
}

impl Content {
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

/// A question with everything that a person needs for the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question<'a> {
    /// Our own words for what is asked.
    pub heading: &'a str,
    /// What may go wrong.
    pub risks: &'a [String],
    /// What we know about it: a label and its value, which may have been chosen by others.
    pub facts: &'a [(&'a str, String)],
    /// What an allow allows.
    pub content: &'a str,
    /// What that is.
    pub kind: Content,
    /// What the model says that it is.
    pub said: Option<&'a str>,
    /// The answers to choose from.
    pub choices: &'a [String],
}

impl Question<'_> {
    /// The whole question in lines of at most `width` columns. Nothing is left out; what repeats is counted.
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
            page.ours("the model describes it so, and nobody has checked it:");
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

/// The SHA-256 of what a question is about, in hexadecimal digits.
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
    /// A line of ours. It wraps, since cutting it would hide what follows.
    fn ours(&mut self, text: &str) {
        let pieces = pieces(&text.replace('\n', " "));
        let indent = Span {
            text: "    ".to_owned(),
            mark: Mark::Plain,
        };
        self.wrapped(&pieces, Voice::Ours, Mark::Plain, &[], &[indent]);
    }

    /// A label with its value. A value that needs more than one line could pass for the next fact, so it gets the gutter.
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
            // A mark is kept together where that is possible.
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

/// The most columns that a terminal may give a character: one that it wraps by itself would get no gutter.
fn width_of(c: char) -> usize {
    c.width_cjk().unwrap_or(2).max(1)
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
