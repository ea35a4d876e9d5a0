//! Prints news of a session to stdout and stderr.

use crate::failure::Failure;
use crate::follow::News;
use crate::interactive::prose::Prose;
use crate::interactive::thoughts::Thoughts;
use crate::interactive::unfinished::Unfinished;
use crate::output::Output;
use crate::render::{Early, Line, LiveOutput, LiveText, Margin, Rest, Tag, Transcript, below, clean};
use agentd_protocol::{
    Delta, Event, EventBody, FailureClass, Fragment, ModelFailed, OpenApproval, RunState, Status, ToolCallId,
};
use agentd_text::wrapped;

/// Which stream gets what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    /// The model's text to stdout, the rest to stderr.
    Split,
    /// Everything to stdout.
    Together,
    /// Only the rest, to stderr; stdout is reserved for the result object at the end.
    StderrOnly,
}

/// The position of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    /// At the beginning of a line.
    Start,
    /// After the model's text.
    Text,
    /// After a prompt.
    Prompt,
}

/// Prints the progress of a session.
#[derive(Debug)]
pub(crate) struct Screen {
    streams: Streams,
    pub(super) transcript: Transcript,
    live: LiveText,
    early: Early,
    running: LiveOutput,
    thoughts: Thoughts,
    pub(super) unfinished: Unfinished,
    prose: Prose,
    cursor: Cursor,
    /// Whether inputs are shown too.
    inputs: bool,
    /// Whether approvals are shown as prompts instead of lines.
    prompts: bool,
    /// Whether the current news belongs to a turn other than the watched one.
    foreign: bool,
    state: Option<RunState>,
    pub(super) margin: Option<Margin>,
}

impl Screen {
    pub(crate) fn new(streams: Streams, output_lines: usize, inputs: bool) -> Self {
        Self {
            streams,
            transcript: Transcript::new(output_lines),
            live: LiveText::default(),
            early: Early::default(),
            running: LiveOutput::default(),
            thoughts: Thoughts::default(),
            unfinished: Unfinished::default(),
            prose: Prose::default(),
            cursor: Cursor::Start,
            inputs,
            prompts: false,
            foreign: false,
            state: None,
            margin: None,
        }
    }

    /// Sets whether the model's reasoning is shown.
    pub(crate) fn thinking(mut self, wanted: bool) -> Self {
        self.thoughts.wanted = wanted;
        self.transcript.thinking(wanted);
        self
    }

    /// The tool name of a proposed call.
    pub(crate) fn tool(&self, call: ToolCallId) -> Option<&str> {
        self.transcript.tool(call)
    }

    /// Shows one piece of news.
    pub(crate) fn show(&mut self, out: &mut Output, news: &News) -> Result<(), Failure> {
        if self.shown_beside(out, news)? {
            return Ok(());
        }
        match news {
            News::Event(event, _) => self.event(out, event),
            News::Delta(Delta::Text(fragment)) => {
                let thought = self.thoughts.pause();
                self.thought(out, thought)?;
                let admitted = self.early.admit(fragment);
                self.streams(out, admitted.as_slice())
            }
            News::Delta(Delta::Status(status)) => self.status(out, status),
            News::Delta(Delta::ToolOutput {
                tool_call,
                offset,
                text,
            }) => {
                let lines = self.running.piece(*tool_call, *offset, text);
                lines.iter().try_for_each(|line| self.output(out, line))
            }
            News::Delta(Delta::Asks { approvals, .. }) => self.of_subagent(out, approvals),
            News::Delta(Delta::Thinking(fragment)) => {
                let lines = self.thoughts.piece(&fragment.text);
                self.thought(out, lines)
            }
            News::Delta(Delta::ToolInput(_) | Delta::Viewers { .. } | Delta::Unknown) => Ok(()),
            News::Synced(synced) => {
                if let Some(partial) = synced.partial.as_deref().filter(|_| out.terminal.stdout) {
                    let text = self.live.partial(partial);
                    self.text(out, &text)?;
                }
                self.status(out, &synced.status)
            }
            News::Lagged => {
                self.running.lagged();
                self.live.lagged();
                Ok(())
            }
            News::Retrying => {
                self.running.lagged();
                self.live.lagged();
                self.say(out, "connection to the daemon lost; reconnecting")
            }
            News::Back => self.say(out, "reconnected"),
            News::Ended(ended) => self.say(out, &ended.message),
        }
    }

    /// Announces a sub-agent's question, unless it is shown as a prompt.
    fn of_subagent(&mut self, out: &mut Output, approvals: &[OpenApproval]) -> Result<(), Failure> {
        if self.prompts {
            return Ok(());
        }
        approvals.iter().try_for_each(|open| {
            let (who, id) = (open.path.last().map_or("", String::as_str), open.approval.short());
            let text = format!("sub-agent {who} asks: {} (agentctl approve {id})", open.title);
            self.say(out, &text)
        })
    }

    /// Writes a message of this program on a line of its own.
    pub(crate) fn say(&mut self, out: &mut Output, text: &str) -> Result<(), Failure> {
        self.break_line(out)?;
        let text = out.paint_stderr().dim(&clean(text));
        out.status(&text);
        Ok(())
    }

    /// Writes a prompt to stderr, even with `-q`.
    pub(crate) fn prompt(&mut self, out: &mut Output, text: &str) -> Result<(), Failure> {
        self.break_line(out)?;
        out.status_always(text);
        if !text.ends_with('\n') {
            self.cursor = Cursor::Prompt;
        }
        Ok(())
    }

    /// From now on approvals are shown as prompts.
    pub(crate) fn prompts(&mut self) {
        self.prompts = true;
    }

    /// Sets whether the following news belongs to another turn than the watched one. A terminal shows that turn's text
    /// too; a program that reads stdout gets only the watched turn's.
    pub(crate) fn foreign(&mut self, foreign: bool) {
        self.foreign = foreign;
    }

    /// The cursor's column on a terminal of this width; `None` after a prompt or if unknown.
    pub(crate) fn column(&self, columns: usize) -> Option<usize> {
        match self.cursor {
            Cursor::Start => Some(0),
            Cursor::Text => self.unfinished.column(columns),
            Cursor::Prompt => None,
        }
    }

    /// Leaves the cursor at the beginning of a line.
    pub(crate) fn close(&mut self, out: &mut Output) -> Result<(), Failure> {
        self.break_line(out)
    }

    /// A person pressed Enter: the terminal has moved to the next line.
    pub(crate) fn entered(&mut self) {
        self.cursor = Cursor::Start;
        self.prose.pause();
        self.unfinished.bury();
    }

    fn event(&mut self, out: &mut Output, event: &Event) -> Result<(), Failure> {
        if let EventBody::ModelFinished(answer) = &event.body {
            let thought = self.thoughts.finish(&answer.content);
            self.thought(out, thought)?;
            let rest = self.live.finish(&answer.content);
            return self.answered(out, rest);
        }
        if let EventBody::ModelStarted(started) = &event.body {
            let waited = self.early.started(started.call, started.attempt);
            return self.streams(out, &waited);
        }
        if let EventBody::ModelFailed(failed) = &event.body {
            self.thoughts.drop_attempt();
            self.attempt_failed(out, failed)?;
        }
        let hidden = self.hides(event);
        let mut lines = self.transcript.lines(event);
        if let EventBody::ToolFinished(call) = &event.body {
            for line in &mut lines {
                self.running.end(call.tool_call, &mut line.below);
            }
        }
        if hidden {
            Ok(())
        } else {
            lines.iter().try_for_each(|line| self.line(out, line))
        }
    }

    /// Whether the event is shown elsewhere or already known to the person, who has just typed the prompt.
    pub(super) fn hides(&self, event: &Event) -> bool {
        let own = matches!(
            event.body,
            EventBody::InputAccepted(_) | EventBody::TurnStarted(_) | EventBody::SessionCreated(_)
        );
        let prompted = matches!(event.body, EventBody::ApprovalAsked(_)) && self.prompts;
        prompted || (own && !self.inputs)
    }

    pub(super) fn status(&mut self, out: &mut Output, status: &Status) -> Result<(), Failure> {
        let changed = self.state.replace(status.state) != Some(status.state);
        // Approvals have lines of their own.
        let asked = matches!(
            status.state,
            RunState::Waiting(agentd_protocol::WaitReason::Approval | agentd_protocol::WaitReason::Question)
        );
        if changed
            && !asked
            && matches!(
                status.state,
                RunState::Waiting(_) | RunState::Faulted | RunState::Paused
            )
        {
            return self.say(out, &format!("{}: {}", status.state, status.reason));
        }
        Ok(())
    }

    /// Prints lines of the model's reasoning.
    fn thought(&mut self, out: &mut Output, lines: impl IntoIterator<Item = String>) -> Result<(), Failure> {
        lines
            .into_iter()
            .try_for_each(|line| self.line(out, &Line::thought(line)))
    }

    /// Prints a line of a running tool's output.
    fn output(&mut self, out: &mut Output, line: &str) -> Result<(), Failure> {
        self.break_line(out)?;
        match self.streams {
            Streams::Together => {
                let text = below(out.paint(), line);
                out.raw(text.as_bytes())
            }
            Streams::Split | Streams::StderrOnly => {
                let text = below(out.paint_stderr(), line);
                out.status(text.trim_end());
                Ok(())
            }
        }
    }

    fn line(&mut self, out: &mut Output, line: &Line) -> Result<(), Failure> {
        self.break_line(out)?;
        match self.streams {
            Streams::Together => {
                let text = line.print(out.paint());
                let text = match out.terminal.columns() {
                    Some(columns) if line.tag == Tag::Model => wrapped(&text, columns),
                    _ => text,
                };
                out.raw(text.as_bytes())
            }
            Streams::Split | Streams::StderrOnly if line.tag == Tag::Model => Ok(()),
            Streams::Split | Streams::StderrOnly => {
                let text = line.print(out.paint_stderr());
                out.status(text.trim_end());
                Ok(())
            }
        }
    }

    fn text(&mut self, out: &mut Output, text: &str) -> Result<(), Failure> {
        let muted = self.streams == Streams::StderrOnly || (self.foreign && !out.terminal.stdout);
        if text.is_empty() || muted {
            return Ok(());
        }
        let shown = self.prose.next(text, out.terminal.columns());
        self.change(out, &shown)
    }

    pub(super) fn put(&mut self, out: &mut Output, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.cursor = if text.ends_with('\n') {
            Cursor::Start
        } else {
            Cursor::Text
        };
        self.unfinished.add(text);
        out.raw(text.as_bytes())
    }

    /// Prints pieces of an answer that may still fail. Only on a terminal, because only there can they be erased.
    fn streams(&mut self, out: &mut Output, pieces: &[Fragment]) -> Result<(), Failure> {
        if !out.terminal.stdout {
            return Ok(());
        }
        let pieces = pieces.iter().map(|piece| self.live.fragment(piece));
        let text: String = pieces.collect();
        self.text(out, &text)
    }

    /// The answer is durable: prints the missing part.
    fn answered(&mut self, out: &mut Output, rest: Rest) -> Result<(), Failure> {
        match rest {
            Rest::Behind(rest) => self.text(out, &rest)?,
            Rest::Instead(whole) => {
                self.take_back(out)?;
                self.text(out, &whole)?;
            }
        }
        self.end_text(out)
    }

    /// Erases the text of a failed attempt. If it was cancelled, the text belongs to the conversation and stays.
    fn attempt_failed(&mut self, out: &mut Output, failed: &ModelFailed) -> Result<(), Failure> {
        if let (FailureClass::Cancelled, Some(partial)) = (failed.class, &failed.partial) {
            let rest = self.live.cancelled(partial);
            return self.answered(out, rest);
        }
        if self.live.drop_attempt() && !self.take_back(out)? {
            self.say(out, "discarded the text above: the model call failed")?;
        }
        Ok(())
    }

    /// Erases the text shown of an answer. Returns false if it cannot be erased any more.
    fn take_back(&mut self, out: &mut Output) -> Result<bool, Failure> {
        let erase = out.terminal.canvas().and_then(|size| self.unfinished.erase(size));
        let Some(erase) = erase else {
            self.end_text(out)?;
            return Ok(false);
        };
        self.unfinished = Unfinished::default();
        self.prose = Prose::default();
        self.cursor = Cursor::Start;
        out.raw(erase.as_bytes())?;
        Ok(true)
    }

    /// Ends the model's text, whether complete or void.
    fn end_text(&mut self, out: &mut Output) -> Result<(), Failure> {
        let held = self.prose.end(out.terminal.columns());
        self.change(out, &held)?;
        self.unfinished = Unfinished::default();
        if self.cursor == Cursor::Text {
            self.cursor = Cursor::Start;
            return out.raw(b"\n");
        }
        Ok(())
    }

    /// Moves the cursor to the beginning of a line.
    pub(super) fn break_line(&mut self, out: &mut Output) -> Result<(), Failure> {
        let held = self.prose.pause();
        self.put(out, &held)?;
        self.unfinished.bury();
        if self.cursor != Cursor::Start {
            self.cursor = Cursor::Start;
            return out.raw(b"\n");
        }
        Ok(())
    }
}
