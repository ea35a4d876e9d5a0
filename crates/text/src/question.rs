//! A question to a person, as typed lines: everything that an answer allows, with our own text kept apart from all other.
//!
//! Pure. The daemon renders the lines, every face shows them and nothing else, and an answer names them by their hash.
//! Only our own lines begin at the margin; every row of untrusted text has a gutter before it.

mod asked;
mod layout;
mod shown;

pub use asked::question_lines;
pub use layout::{Line, Mark, Span, laid_out};
pub use shown::shown;

use crate::visible::{Piece, lines, pieces};
use agentd_protocol::{QuestionLine, QuestionMark, QuestionSpan, QuestionVoice as Voice};
use sha2::{Digest as _, Sha256};

/// Digits of a hash that are shown.
const DIGITS: usize = 16;

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
    /// The whole question as typed lines. Nothing is left out; repetitions are counted.
    #[must_use]
    pub fn lines(&self) -> Vec<QuestionLine> {
        let mut page = Page::default();
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
    hex(&Sha256::digest(content.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Default)]
struct Page {
    lines: Vec<QuestionLine>,
}

impl Page {
    /// A line of our own text.
    fn ours(&mut self, text: &str) {
        let spans = spans(pieces(&text.replace('\n', " ")), None);
        self.put(Voice::Ours, None, false, spans);
    }

    /// A label with its value. A multi-line value could pass for the next fact, so it is quoted.
    fn fact(&mut self, label: &str, value: &str, voice: Voice) {
        let label = Some(label.to_owned());
        let mut all = lines(value);
        if all.len() == 1 {
            let one = all.pop().unwrap_or_default();
            return self.put(voice, label, false, spans(one, None));
        }
        self.put(voice, label, false, Vec::new());
        for line in all {
            self.put(voice, None, true, spans(line, None));
        }
    }

    fn foreign(&mut self, text: &str, voice: Voice, change: bool) {
        for line in lines(text) {
            let begins = line.first().filter(|piece| !piece.mark);
            let begins = begins.and_then(|piece| piece.text.chars().next());
            let mark = match begins {
                Some('+') if change => Some(QuestionMark::Added),
                Some('-') if change => Some(QuestionMark::Removed),
                _ => None,
            };
            self.put(voice, None, true, spans(line, mark));
        }
    }

    fn put(&mut self, voice: Voice, label: Option<String>, quoted: bool, spans: Vec<QuestionSpan>) {
        self.lines.push(QuestionLine {
            voice,
            label,
            quoted,
            spans,
        });
    }
}

fn spans(pieces: Vec<Piece>, mark: Option<QuestionMark>) -> Vec<QuestionSpan> {
    let span = |piece: Piece| QuestionSpan {
        text: piece.text,
        mark: if piece.mark {
            Some(QuestionMark::Hidden)
        } else {
            mark
        },
    };
    pieces.into_iter().map(span).collect()
}

#[cfg(test)]
mod tests;
