//! Events as lines for people.

use crate::amount::span;
use crate::entries::{decided_line, input_text, late_line, model_failed, turn_finished};
use crate::live::{text_of, thoughts_of};
use crate::paint::Paint;
use crate::summary::summary;
use agentd_protocol::{
    ApprovalKind, Decision, Delivery, Event, EventBody, FailureClass, InputAccepted, InputId, NoteKind,
    ToolCallId, ToolFinished, ToolStatus, VerdictKind,
};
use agentd_text::{for_terminal as clean, one_line};
use std::collections::HashMap;

/// The kind of a line; determines its first word and colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// An input.
    User,
    /// The model's text, without a first word.
    Model,
    /// The model's reasoning.
    Thought,
    /// A tool call begins.
    Tool,
    /// A tool call went well.
    Done,
    /// Something failed.
    Bad,
    /// A question to a person, or the answer.
    Ask,
    /// A message from agentd itself.
    Note,
    /// A turn or a session began or ended.
    Mark,
}

/// A line, and the lines that belong below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its kind.
    pub tag: Tag,
    /// The first word; empty for text.
    pub word: String,
    /// The text, as it came.
    pub text: String,
    /// Shown indented below the line.
    pub below: Vec<String>,
    /// The line comes from an imported log; every printed line is marked so.
    pub imported: bool,
}

const WORD_WIDTH: usize = 8;
/// The most characters of an output line that are shown.
const BELOW_WIDTH: usize = 300;

impl Line {
    /// A line with nothing below it.
    pub fn new(tag: Tag, word: &str, text: impl Into<String>) -> Self {
        Self {
            tag,
            word: word.to_owned(),
            text: text.into(),
            below: Vec::new(),
            imported: false,
        }
    }

    /// The model's text.
    pub fn said(text: impl Into<String>) -> Self {
        Self::new(Tag::Model, "", text)
    }

    /// The model's reasoning.
    pub fn thought(text: impl Into<String>) -> Self {
        Self::new(Tag::Thought, "", text)
    }

    /// The line as it is printed, ending in a line break.
    pub fn print(&self, paint: Paint) -> String {
        let text = clean(&self.text);
        let mut printed = match self.tag {
            Tag::Model => format!("{}\n", text.trim_end()),
            Tag::User => text
                .trim_end()
                .lines()
                .map(|line| format!("{}\n", paint.bold(&format!("> {line}"))))
                .collect(),
            Tag::Thought => {
                let dim = |line| format!("{}\n", paint.dim(&format!("~ {line}")));
                text.trim_end().lines().map(dim).collect()
            }
            Tag::Tool | Tag::Done | Tag::Bad | Tag::Ask | Tag::Note | Tag::Mark => {
                let word = self.colour(paint, &format!("{:<WORD_WIDTH$}", self.word));
                format!("{word} {}\n", one_line(&text, 300))
            }
        };
        for line in &self.below {
            printed.push_str(&below(paint, line));
        }
        if self.imported {
            let marked = |line: &str| format!("{} {line}", paint.dim("¦"));
            printed = printed.split_inclusive('\n').map(marked).collect();
        }
        printed
    }

    fn colour(&self, paint: Paint, word: &str) -> String {
        match self.tag {
            Tag::Done => paint.good(word),
            Tag::Bad => paint.bad(word),
            Tag::Ask => paint.warn(word),
            Tag::Tool | Tag::Mark => paint.accent(word),
            Tag::Note | Tag::User | Tag::Model | Tag::Thought => paint.dim(word),
        }
    }
}

/// A line of a tool's output, ending in a line break.
pub fn below(paint: Paint, line: &str) -> String {
    let indent = " ".repeat(WORD_WIDTH);
    format!("{indent} {}\n", paint.dim(&format!("| {}", as_it_stands(line))))
}

/// A line of a file or an output. Its white space has meaning (a diff, a table), so it stays.
fn as_it_stands(line: &str) -> String {
    let line = clean(line).replace('\t', "    ").replace('\n', " ");
    if line.chars().count() <= BELOW_WIDTH {
        return line.trim_end().to_owned();
    }
    let kept: String = line.chars().take(BELOW_WIDTH - 1).collect();
    format!("{}…", kept.trim_end())
}

/// Turns events into lines; remembers the names and titles of running calls.
#[derive(Debug)]
pub struct Transcript {
    titles: HashMap<ToolCallId, String>,
    names: HashMap<ToolCallId, String>,
    /// The texts of inputs that wait for a later turn.
    queued: HashMap<InputId, String>,
    /// Whether a turn runs.
    running: bool,
    /// The most lines shown of a tool's output.
    output_lines: usize,
    thinking: bool,
}

impl Transcript {
    /// A transcript that shows at most this many lines of a tool's output.
    #[must_use]
    pub fn new(output_lines: usize) -> Self {
        Self {
            titles: HashMap::new(),
            names: HashMap::new(),
            queued: HashMap::new(),
            running: false,
            output_lines,
            thinking: false,
        }
    }

    /// Whether to show the model's reasoning too.
    pub fn thinking(&mut self, wanted: bool) {
        self.thinking = wanted;
    }

    /// The tool name of a proposed call.
    pub fn tool(&self, call: ToolCallId) -> Option<&str> {
        self.names.get(&call).map(String::as_str)
    }

    /// The lines of an event; most have none or one.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most events are one line, the same as everywhere"
    )]
    pub fn lines(&mut self, event: &Event) -> Vec<Line> {
        match &event.body {
            body if told_elsewhere(body) => Vec::new(),
            EventBody::InputAccepted(input) => vec![self.accepted(input)],
            EventBody::TurnStarted(turn) => {
                self.running = true;
                let inputs = turn.inputs.iter();
                let waited = inputs.filter_map(|input| self.queued.remove(input));
                waited.map(|text| Line::new(Tag::User, "", text)).collect()
            }
            EventBody::InputCancelled(cancelled) => {
                self.queued.remove(&cancelled.input);
                summary_line(&event.body).into_iter().collect()
            }
            EventBody::ModelFinished(answer) => {
                let thought = Some(thoughts_of(&answer.content)).filter(|_| self.thinking);
                let said = text_of(&answer.content);
                let lines = [thought.map(Line::thought), Some(Line::said(said))];
                let lines = lines.into_iter().flatten();
                lines.filter(|line| !line.text.trim().is_empty()).collect()
            }
            EventBody::ModelFailed(failed) => vec![model_failed(failed, Some(event.at))],
            EventBody::ToolProposed(call) => {
                self.names.insert(call.tool_call, call.name.clone());
                Vec::new()
            }
            EventBody::ToolStarted(call) => {
                self.titles.insert(call.tool_call, call.title.clone());
                vec![Line::new(Tag::Tool, "tool", call.title.clone())]
            }
            EventBody::ToolFinished(call) => vec![self.tool_finished(call)],
            EventBody::ApprovalAsked(ask) => {
                // A denied call never starts, so its title comes from here.
                self.titles
                    .extend(ask.tool_call.map(|call| (call, ask.title.clone())));
                let text = format!("{}  [approval {}]", ask.title, ask.approval.short());
                let mut line = Line::new(Tag::Ask, "ask", text);
                if ask.kind == ApprovalKind::Plan {
                    line.below = ask.detail.lines().map(str::to_owned).collect();
                }
                vec![line]
            }
            EventBody::ApprovalEscalated(late) => vec![late_line(late)],
            EventBody::ApprovalDecided(decided) => vec![decided_line(decided, &event.by)],
            EventBody::TurnFinished(turn) => {
                self.running = false;
                vec![turn_finished(turn)]
            }
            EventBody::ImportedEvent(imported) => {
                let mut lines = self.lines(imported.event.hearsay());
                lines.iter_mut().for_each(|line| line.imported = true);
                lines
            }
            EventBody::Unknown => vec![Line::new(Tag::Note, "?", "an event from a newer version")],
            body => summary_line(body).into_iter().collect(),
        }
    }

    /// An input. One that waits for a later turn is marked where it was sent, and shown again where that turn starts: what
    /// comes between is not about it.
    fn accepted(&mut self, input: &InputAccepted) -> Line {
        let text = input_text(&input.content);
        let waits = matches!(input.delivery, Delivery::Queue | Delivery::Collect);
        if !waits || !self.running {
            return Line::new(Tag::User, "", text);
        }
        let line = Line::new(Tag::Note, "queued", text.clone());
        self.queued.insert(input.input, text);
        line
    }

    fn tool_finished(&mut self, call: &ToolFinished) -> Line {
        let outcome = &call.outcome;
        let name = self.names.remove(&call.tool_call);
        let title = self.titles.remove(&call.tool_call).or(name).unwrap_or_default();
        let (tag, status) = match outcome.status {
            ToolStatus::Ok => (Tag::Done, "ok"),
            ToolStatus::Error => (Tag::Bad, "error"),
            ToolStatus::Denied => (Tag::Bad, "denied"),
            ToolStatus::Interrupted => (Tag::Bad, "stopped"),
            ToolStatus::Timeout => (Tag::Bad, "timeout"),
        };
        // For a call that never ran, a duration means nothing.
        let ran = outcome.duration_ms > 0
            || !matches!(outcome.status, ToolStatus::Denied | ToolStatus::Interrupted);
        let took = ran.then(|| span(outcome.duration_ms));
        let unknown = outcome.outcome_unknown.then(|| "outcome unknown".to_owned());
        let facts: Vec<String> = [took, unknown].into_iter().flatten().collect();
        let mut text = title;
        if !facts.is_empty() {
            text.push_str(&format!(" ({})", facts.join(", ")));
        }
        let mut line = Line::new(tag, status, text);
        let shown = outcome.display.as_ref().unwrap_or(&outcome.llm_text);
        let all: Vec<&str> = shown.lines().collect();
        line.below = all
            .iter()
            .take(self.output_lines)
            .map(|line| (*line).to_owned())
            .collect();
        if all.len() > self.output_lines && self.output_lines > 0 {
            line.below
                .push(format!("… {} more lines", all.len() - self.output_lines));
        }
        line
    }
}

/// Events that tell a person nothing new: our reminders to the model about its plan, files that were recorded without an
/// exception, and what a cancel closes, since the end of the turn reports it.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others are told")]
fn told_elsewhere(body: &EventBody) -> bool {
    match body {
        EventBody::NoteInjected(note) => note.kind == NoteKind::PlanReminder,
        EventBody::WorkspaceCheckpointed(taken) => taken.left_out.is_empty() && taken.not_kept.is_none(),
        EventBody::ModelFailed(failed) => failed.class == FailureClass::Cancelled,
        EventBody::ApprovalDecided(decided) => decided.decision == Decision::Withdrawn,
        EventBody::ToolFinished(call) => {
            let outcome = &call.outcome;
            let ran = outcome.duration_ms > 0 || outcome.outcome_unknown;
            outcome.status == ToolStatus::Interrupted && !ran
        }
        _ => false,
    }
}

/// Events that a transcript shows in one short line, or not at all.
fn summary_line(body: &EventBody) -> Option<Line> {
    let denied = match body {
        EventBody::VerdictGiven(given) if given.verdict.kind != VerdictKind::Deny => return None,
        body => matches!(body, EventBody::VerdictGiven(_)),
    };
    if matches!(body, EventBody::ModelStarted(_)) {
        return None;
    }
    let tag = if denied || matches!(body, EventBody::WarningRaised(_) | EventBody::LimitReached(_)) {
        Tag::Bad
    } else if matches!(body, EventBody::NoteInjected(_)) {
        Tag::Note
    } else {
        Tag::Mark
    };
    let first = body.kind().split('.').next().unwrap_or_default();
    Some(Line::new(tag, first, summary(body)))
}

#[cfg(test)]
mod tests;
