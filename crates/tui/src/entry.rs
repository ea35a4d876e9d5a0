//! The parts of a transcript: what was said, and cards of tool calls.

use agentd_protocol::{
    Delivery, Event, InputId, Seq, SessionId, SubagentFinished, SubagentStarted, Timestamp, ToolCallId,
    ToolFinished, ToolStatus,
};
use agentd_viewer::{Line, count, dollars, tokens, word};
use serde_json::Value;

/// The most bytes of one text that are kept; the pager shows the whole.
pub(crate) const MOST_TEXT: usize = 128 << 10;

/// One part of the transcript.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Unique in this view.
    pub(crate) id: u64,
    /// The event that began it.
    pub(crate) seq: Seq,
    pub(crate) kind: Kind,
    /// Whether a person unfolded or folded it; absent: as everything.
    pub(crate) open: Option<bool>,
    /// Changes whenever the content changes.
    pub(crate) revision: u64,
    /// The event that has its images.
    pub(crate) images: Option<Seq>,
}

/// What an entry shows.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// An input.
    User {
        input: InputId,
        text: String,
        place: Place,
    },
    /// The model's text.
    Said(String),
    /// The model's reasoning.
    Thought(String),
    /// A tool call.
    Tool(Box<Card>),
    /// Anything else, as in line mode.
    Line(Line),
}

/// Where an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It waits to join the conversation, in this way.
    Queued(Delivery),
    Joined,
    Withdrawn,
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Proposed,
    /// A person is asked.
    Asked,
    Running(Timestamp),
    Ended(ToolStatus),
}

/// A tool call.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    pub(crate) call: ToolCallId,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) input: Option<Value>,
    pub(crate) stage: Stage,
    pub(crate) took_ms: u64,
    pub(crate) unknown: bool,
    pub(crate) output: String,
    /// The sub-agent that it started.
    pub(crate) child: Option<Child>,
    /// The offset at which the next piece of output is expected.
    next: u64,
}

/// A sub-agent, for the card of its call.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) session: SessionId,
    /// Its state, its reason and its numbers.
    pub(crate) line: String,
    pub(crate) ended: bool,
}

impl Child {
    pub(crate) fn started(started: &SubagentStarted) -> Self {
        Self {
            session: started.child,
            line: "starting".to_owned(),
            ended: false,
        }
    }

    pub(crate) fn finished(finished: &SubagentFinished) -> Self {
        let spent = &finished.spent;
        let how = finished
            .reason
            .map_or_else(|| "ended".to_owned(), |reason| word(&reason));
        Self {
            session: finished.child,
            line: format!(
                "{} · {} · {} tokens · {}",
                how.replace('_', " "),
                count(spent.steps, "step"),
                tokens(spent.tokens),
                dollars(spent.usd)
            ),
            ended: true,
        }
    }
}

impl Card {
    pub(crate) fn new(call: ToolCallId, name: &str) -> Self {
        Self {
            call,
            name: name.to_owned(),
            title: String::new(),
            input: None,
            stage: Stage::Proposed,
            took_ms: 0,
            unknown: false,
            output: String::new(),
            child: None,
            next: 0,
        }
    }

    /// A piece of the output while the call runs. The last part is kept.
    pub(crate) fn piece(&mut self, offset: u64, text: &str) {
        let end = offset.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        if end <= self.next {
            return;
        }
        if offset > self.next {
            self.output.push_str("\n…\n");
        }
        self.next = end;
        self.output.push_str(text);
        if self.output.len() > MOST_TEXT {
            let mut from = self.output.len() - MOST_TEXT / 2;
            while !self.output.is_char_boundary(from) {
                from += 1;
            }
            self.output.drain(..from);
        }
    }

    pub(crate) fn finish(&mut self, ended: &ToolFinished) {
        let outcome = &ended.outcome;
        self.stage = Stage::Ended(outcome.status);
        self.took_ms = outcome.duration_ms;
        self.unknown = outcome.outcome_unknown;
        self.output = bounded(outcome.display.as_ref().unwrap_or(&outcome.llm_text));
        if let Some(cut) = &outcome.truncated {
            self.output.push_str(&format!("\n… {} bytes in all", cut.bytes));
        }
    }

    pub(crate) const fn ended(&self) -> bool {
        matches!(self.stage, Stage::Ended(_))
    }

    pub(crate) const fn failed(&self) -> bool {
        matches!(self.stage, Stage::Ended(status) if !matches!(status, ToolStatus::Ok))
    }

    /// The name before the title, unless the title repeats it.
    pub(crate) fn heading(&self) -> String {
        if self.title.is_empty() {
            self.name.clone()
        } else {
            self.title.clone()
        }
    }
}

impl Entry {
    pub(crate) fn new(event: &Event, kind: Kind) -> Self {
        Self {
            id: 0,
            seq: event.seq,
            kind,
            open: None,
            revision: 0,
            images: None,
        }
    }

    /// About how much memory it takes.
    pub(crate) fn weight(&self) -> usize {
        200 + match &self.kind {
            Kind::User { text, .. } | Kind::Said(text) | Kind::Thought(text) => text.len(),
            Kind::Tool(card) => card.output.len() + 400,
            Kind::Line(line) => line.text.len() + line.below.iter().map(String::len).sum::<usize>(),
        }
    }

    /// Its text, for a search and for the clipboard.
    pub(crate) fn text(&self) -> String {
        match &self.kind {
            Kind::User { text, .. } | Kind::Said(text) | Kind::Thought(text) => text.clone(),
            Kind::Tool(card) => format!("{}\n{}", card.heading(), card.output),
            Kind::Line(line) => format!("{} {}\n{}", line.word, line.text, line.below.join("\n")),
        }
    }

    /// The sub-agent that the call started.
    pub(crate) fn child(&self) -> Option<&Child> {
        match &self.kind {
            Kind::Tool(card) => card.child.as_ref(),
            Kind::User { .. } | Kind::Said(_) | Kind::Thought(_) | Kind::Line(_) => None,
        }
    }

    pub(crate) fn failed(&self) -> bool {
        match &self.kind {
            Kind::Tool(card) => card.failed(),
            Kind::Line(line) => line.tag == agentd_viewer::Tag::Bad,
            Kind::User { .. } | Kind::Said(_) | Kind::Thought(_) => false,
        }
    }

    /// Whether it is about an approval.
    pub(crate) fn asks(&self) -> bool {
        match &self.kind {
            Kind::Tool(card) => card.stage == Stage::Asked,
            Kind::Line(line) => matches!(line.word.as_str(), "ask" | "answer"),
            Kind::User { .. } | Kind::Said(_) | Kind::Thought(_) => false,
        }
    }
}

/// The beginning of a text that may be very long.
pub(crate) fn bounded(text: &str) -> String {
    if text.len() <= MOST_TEXT {
        return text.to_owned();
    }
    let mut end = MOST_TEXT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = text.get(..end).unwrap_or_default();
    format!(
        "{kept}\n… {} more bytes; the pager shows the whole",
        text.len() - end
    )
}
