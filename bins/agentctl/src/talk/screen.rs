//! News of a session on the two streams.

use crate::failure::Failure;
use crate::follow::News;
use crate::output::Output;
use crate::render::{Early, Line, LiveOutput, LiveText, Rest, Tag, Transcript, below, clean};
use agentd_protocol::{Delta, Event, EventBody, OpenApproval, RunState, Status, ToolCallId};

/// What goes where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The model's text to stdout, the rest to stderr.
    Split,
    /// All to stdout.
    Together,
    /// Only the rest, to stderr: stdout is for an object at the end.
    TalkOnly,
}

/// Prints a session as it goes on.
#[derive(Debug)]
pub(crate) struct Screen {
    place: Place,
    transcript: Transcript,
    live: LiveText,
    early: Early,
    running: LiveOutput,
    /// The cursor stands behind text without a line break.
    midline: bool,
    /// Inputs are shown, too.
    inputs: bool,
    /// Approvals are shown as prompts, not as lines.
    prompts: bool,
    state: Option<RunState>,
}

impl Screen {
    pub(crate) fn new(place: Place, output_lines: usize, inputs: bool) -> Self {
        Self {
            place,
            transcript: Transcript::new(output_lines),
            live: LiveText::default(),
            early: Early::default(),
            running: LiveOutput::default(),
            midline: false,
            inputs,
            prompts: false,
            state: None,
        }
    }

    /// The name of the tool of a call that was proposed.
    pub(crate) fn tool(&self, call: ToolCallId) -> Option<&str> {
        self.transcript.tool(call)
    }

    /// Shows one piece of news.
    pub(crate) fn show(&mut self, out: &mut Output, news: &News) -> Result<(), Failure> {
        match news {
            News::Event(event, _) => self.event(out, event),
            News::Delta(Delta::Text(fragment)) => {
                let admitted = self.early.admit(fragment);
                let text = admitted
                    .map(|fragment| self.live.fragment(&fragment))
                    .unwrap_or_default();
                self.text(out, &text)
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
            News::Delta(Delta::Thinking(_) | Delta::ToolInput(_) | Delta::Unknown) => Ok(()),
            News::Synced(synced) => {
                let text = synced
                    .partial
                    .as_deref()
                    .map(|text| self.live.partial(text))
                    .unwrap_or_default();
                self.text(out, &text)?;
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
                self.say(out, "the daemon went away; trying to come back")
            }
            News::Back => self.say(out, "connected again"),
            News::Ended(ended) => self.say(out, &ended.message),
        }
    }

    /// A sub-agent asks; where there are prompts it is prompted for.
    fn of_subagent(&mut self, out: &mut Output, approvals: &[OpenApproval]) -> Result<(), Failure> {
        if self.prompts {
            return Ok(());
        }
        approvals.iter().try_for_each(|open| {
            let (who, id) = (open.path.last().map_or("", String::as_str), open.approval.short());
            let text = format!("the sub-agent {who} asks: {} (agentctl approve {id})", open.title);
            self.say(out, &text)
        })
    }

    /// Says something of our own, on a line of its own.
    pub(crate) fn say(&mut self, out: &mut Output, text: &str) -> Result<(), Failure> {
        self.break_line(out)?;
        let text = out.paint_talk().dim(&clean(text));
        out.talk(&text);
        Ok(())
    }

    /// Puts a prompt on stderr, whatever `-q` says.
    pub(crate) fn prompt(&mut self, out: &mut Output, text: &str) -> Result<(), Failure> {
        self.break_line(out)?;
        out.talk_always(text);
        self.midline = !text.ends_with('\n');
        Ok(())
    }

    /// From now on approvals are shown as prompts.
    pub(crate) fn prompts(&mut self) {
        self.prompts = true;
    }

    /// Leaves the cursor at the beginning of a line.
    pub(crate) fn close(&mut self, out: &mut Output) -> Result<(), Failure> {
        self.break_line(out)
    }

    /// A person pressed Enter: the terminal has moved to the next line.
    pub(crate) fn entered(&mut self) {
        self.midline = false;
    }

    fn event(&mut self, out: &mut Output, event: &Event) -> Result<(), Failure> {
        if let EventBody::ModelFinished(answer) = &event.body {
            let shown = self.live.open();
            return match self.live.finish(&answer.content) {
                Rest::Behind(rest) => {
                    self.text(out, &rest)?;
                    self.end_text(out, shown || !rest.is_empty())
                }
                Rest::Instead(whole) => {
                    self.end_text(out, true)?;
                    self.text(out, &whole)?;
                    self.end_text(out, true)
                }
            };
        }
        if let EventBody::ModelStarted(started) = &event.body {
            let waited = self.early.started(started.call, started.attempt);
            let text: String = waited
                .iter()
                .map(|fragment| self.live.fragment(fragment))
                .collect();
            return self.text(out, &text);
        }
        if matches!(event.body, EventBody::ModelFailed(_)) && self.live.drop_attempt() {
            self.end_text(out, true)?;
        }
        // Who has just typed the prompt knows it.
        let own = matches!(
            event.body,
            EventBody::InputAccepted(_) | EventBody::SessionCreated(_)
        );
        let prompted = matches!(event.body, EventBody::ApprovalAsked(_)) && self.prompts;
        let skip = prompted || (own && !self.inputs);
        let mut lines = self.transcript.lines(event);
        if let EventBody::ToolFinished(call) = &event.body {
            for line in &mut lines {
                self.running.end(call.tool_call, &mut line.below);
            }
        }
        if skip {
            Ok(())
        } else {
            lines.iter().try_for_each(|line| self.line(out, line))
        }
    }

    fn status(&mut self, out: &mut Output, status: &Status) -> Result<(), Failure> {
        let changed = self.state.replace(status.state) != Some(status.state);
        // Approvals have their own lines.
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

    /// A line that a running tool has written.
    fn output(&mut self, out: &mut Output, line: &str) -> Result<(), Failure> {
        self.break_line(out)?;
        match self.place {
            Place::Together => {
                let text = below(out.paint(), line);
                out.raw(text.as_bytes())
            }
            Place::Split | Place::TalkOnly => {
                let text = below(out.paint_talk(), line);
                out.talk(text.trim_end());
                Ok(())
            }
        }
    }

    fn line(&mut self, out: &mut Output, line: &Line) -> Result<(), Failure> {
        self.break_line(out)?;
        match self.place {
            Place::Together => {
                let text = line.print(out.paint());
                out.raw(text.as_bytes())
            }
            Place::Split | Place::TalkOnly if line.tag == Tag::Model => Ok(()),
            Place::Split | Place::TalkOnly => {
                let text = line.print(out.paint_talk());
                out.talk(text.trim_end());
                Ok(())
            }
        }
    }

    fn text(&mut self, out: &mut Output, text: &str) -> Result<(), Failure> {
        if text.is_empty() || self.place == Place::TalkOnly {
            return Ok(());
        }
        self.midline = !text.ends_with('\n');
        out.raw(clean(text).as_bytes())
    }

    /// The model's text is complete.
    fn end_text(&mut self, out: &mut Output, shown: bool) -> Result<(), Failure> {
        if shown && self.midline {
            self.midline = false;
            return out.raw(b"\n");
        }
        Ok(())
    }

    /// On a terminal both streams share the line; in a file the text must stay whole.
    fn break_line(&mut self, out: &mut Output) -> Result<(), Failure> {
        if self.midline && (self.place == Place::Together || out.terminal.stdout) {
            self.midline = false;
            return out.raw(b"\n");
        }
        Ok(())
    }
}
