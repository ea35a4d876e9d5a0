//! The view of one session: what is known of it, and what a person does with it.

use crate::action::{Action, Focus, Setup};
use crate::composer::{Composer, Proposal};
use crate::entry::{Kind, MOST_TEXT};
use crate::facts::Facts;
use crate::family::Family;
use crate::layout::{Layouts, Look};
use crate::log::Log;
use crate::panel::Panel;
use crate::scroll::{Position, Rows, Shown};
use agentd_protocol::{
    ApprovalId, ApprovalQuestion, Delivery, Delta, Event, EventBody, Fragment, ModelStarted, Seq, Summary,
    Synced, Timestamp,
};
use agentd_viewer::{Asks, Early, LiveText, decided_by, decided_how};
use ratatui::layout::Rect;

/// Said when a person cancels the turn.
pub(crate) const CANCELLING: &str = "cancelling the turn";

/// The view of one session.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent states of a screen")]
pub struct SessionView {
    pub(crate) setup: Setup,
    pub(crate) facts: Facts,
    pub(crate) log: Log,
    pub(crate) layouts: Layouts,
    pub(crate) composer: Composer,
    pub(crate) asks: Asks,
    pub(crate) panel: Option<Panel>,
    pub(crate) focus: Focus,
    pub(crate) position: Position,
    pub(crate) selected: Option<u64>,
    pub(crate) found: Option<String>,
    pub(crate) open: bool,
    pub(crate) help: bool,
    pub(crate) family: Family,
    pub(crate) delivery: Delivery,
    /// A message of this program, and when it was shown.
    pub(crate) notice: Option<(String, Timestamp)>,
    /// Why the connection is lost.
    pub(crate) lost: bool,
    pub(crate) loading: bool,
    /// Escape was pressed once, where a turn would lose work.
    pub(crate) cancelling: Option<Timestamp>,
    /// The first of the two keys that detach was pressed.
    pub(crate) prefix: bool,
    caught_up: bool,
    live: LiveText,
    early: Early,
    /// The text of the running model call so far.
    text: String,
    thinking: String,
    pub(crate) now: Timestamp,
    /// The transcript's size on the screen, and what it shows.
    pub(crate) area: Rect,
    pub(crate) visible: Vec<Shown>,
}

impl SessionView {
    /// The view of a session.
    #[must_use]
    pub fn new(row: &Summary, setup: Setup, now: Timestamp) -> Self {
        Self {
            facts: Facts::new(row, setup.windows.clone()),
            log: Log::new(),
            layouts: Layouts::default(),
            composer: Composer::new(setup.history.clone(), setup.commands.clone()),
            asks: Asks::default(),
            panel: None,
            focus: if setup.writes {
                Focus::Message
            } else {
                Focus::Transcript
            },
            position: Position::Follow,
            selected: None,
            found: None,
            open: setup.open,
            help: false,
            family: Family::default(),
            delivery: Delivery::Steer,
            notice: None,
            lost: false,
            loading: false,
            cancelling: None,
            prefix: false,
            caught_up: false,
            live: LiveText::default(),
            early: Early::default(),
            text: String::new(),
            thinking: String::new(),
            now,
            area: Rect::default(),
            visible: Vec::new(),
            setup,
        }
    }

    /// The last message of the model and how its turn ended, for the terminal that the view leaves.
    #[must_use]
    pub fn last_words(&self) -> Option<String> {
        self.log.entries.iter().rev().find_map(|entry| {
            if let Kind::Said(text) = &entry.kind {
                Some(text.clone())
            } else {
                None
            }
        })
    }

    /// The last event that the view knows.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.log.head
    }

    /// The running turn.
    #[must_use]
    pub const fn turn(&self) -> Option<agentd_protocol::TurnId> {
        self.facts.turn
    }

    /// Takes in an event of the log.
    pub fn event(&mut self, event: &Event) {
        self.facts.event(event);
        let tool = self.tool_of(event);
        let other = self.asks.observe(event, tool.as_deref());
        if let Some(other) = other.filter(|_| self.caught_up && self.setup.writes) {
            let how = decided_how(other.decided.decision);
            let by = decided_by(&other.decided, &other.by);
            self.tell(format!("decided elsewhere: {how} {by}: {}", other.asked.title));
        }
        self.stream_event(event);
        self.log.live(event);
        self.show_question();
    }

    fn tool_of(&self, event: &Event) -> Option<String> {
        let EventBody::ApprovalAsked(ask) = &event.body else {
            return None;
        };
        let call = ask.tool_call?;
        self.log.entries.iter().rev().find_map(|entry| match &entry.kind {
            Kind::Tool(card) if card.call == call => Some(card.name.clone()),
            _ => None,
        })
    }

    /// What an event does to the text that streams.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other events do not concern it"
    )]
    fn stream_event(&mut self, event: &Event) {
        if matches!(&event.body, EventBody::TurnFinished(_)) {
            self.cancelling = None;
            // It was about this turn, and the next one may begin at once.
            self.notice.take_if(|(text, _)| text == CANCELLING);
        }
        match &event.body {
            EventBody::ModelStarted(started) => self.call_started(started),
            EventBody::ModelFinished(_) | EventBody::ModelFailed(_) | EventBody::TurnFinished(_) => {
                self.live.drop_attempt();
                self.text.clear();
                self.thinking.clear();
            }
            _ => {}
        }
    }

    fn call_started(&mut self, started: &ModelStarted) {
        self.text.clear();
        self.thinking.clear();
        self.live.drop_attempt();
        for fragment in self.early.started(started.call, started.attempt) {
            self.text.push_str(&self.live.fragment(&fragment));
        }
    }

    /// Takes in a live fragment.
    pub fn delta(&mut self, delta: &Delta) {
        match delta {
            Delta::Text(fragment) => self.piece(fragment),
            Delta::Thinking(fragment) => {
                let known = u64::try_from(self.thinking.len()).unwrap_or(u64::MAX);
                if fragment.offset >= known && self.thinking.len() < MOST_TEXT {
                    self.thinking.push_str(&fragment.text);
                }
            }
            Delta::ToolOutput {
                tool_call,
                offset,
                text,
            } => {
                if let Some(card) = self.log.card(*tool_call) {
                    card.piece(*offset, text);
                }
            }
            Delta::Status(status) => self.facts.status(status),
            Delta::Viewers { count } => self.facts.viewers = *count,
            Delta::Asks { child, approvals } => {
                for over in self.asks.of_subagent(*child, approvals) {
                    self.tell(format!("closed: {}", over.title));
                }
                self.show_question();
            }
            Delta::ToolInput(_) | Delta::Unknown => {}
        }
    }

    fn piece(&mut self, fragment: &Fragment) {
        if let Some(fragment) = self.early.admit(fragment) {
            let more = self.live.fragment(&fragment);
            self.text.push_str(&more);
            shorten(&mut self.text);
        }
    }

    /// The log was replayed; from here on news is live.
    pub fn synced(&mut self, synced: &Synced) {
        self.caught_up = true;
        self.lost = false;
        self.facts.status(&synced.status);
        self.log.head = self.log.head.max(synced.seq);
        if let Some(partial) = &synced.partial {
            let more = self.live.partial(partial);
            self.text.push_str(&more);
        }
        self.asks.synced(&synced.approvals);
        self.show_question();
    }

    /// Fragments were missed.
    pub fn lagged(&mut self) {
        self.live.lagged();
    }

    /// The connection is lost or back.
    pub fn connected(&mut self, connected: bool) {
        self.lost = !connected;
        if connected && let Some(panel) = &mut self.panel {
            panel.ask_again();
        }
        if !connected {
            self.caught_up = false;
            self.live.lagged();
            self.loading = false;
            self.facts.viewers = 1;
        }
    }

    /// A page of the log was loaded: before the window, after it, or its end.
    pub fn page(&mut self, wanted: &Action, page: &[Event], head: Seq) {
        self.loading = false;
        if matches!(wanted, Action::Older(_)) {
            self.log.older(page);
        } else if matches!(wanted, Action::Tail) {
            self.log.replace(page, head.max(self.log.head));
            self.position = Position::Follow;
        } else {
            self.log.newer(page, head);
        }
    }

    /// A request failed, also one for a page.
    pub fn failed(&mut self, text: String) {
        self.loading = false;
        self.tell(text);
    }

    /// Sets the time at which the next news come.
    pub const fn at(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Shows a message of this program.
    pub fn tell(&mut self, text: String) {
        self.notice = Some((text, self.now));
    }

    /// An answer was not delivered: the question is shown again, unless it is over.
    pub fn refused(&mut self, approval: ApprovalId, over: bool) {
        if over {
            self.asks.forget(approval);
        } else {
            self.asks.unanswered(approval);
        }
        self.show_question();
    }

    /// Proposals for the file that is being written.
    pub fn files(&mut self, of: &str, found: Vec<Proposal>) {
        self.composer.files(of, found);
    }

    /// The editor's text replaces the message.
    pub fn edited(&mut self, text: &str) {
        self.composer.set(text.trim_end_matches('\n'));
    }

    /// A pasted text.
    pub fn paste(&mut self, text: &str) {
        if let Some(words) = self.panel.as_mut().and_then(|panel| panel.words.as_mut()) {
            words.extend(text.chars().filter(|c| !c.is_control()).take(2_000));
        } else if let Focus::Search(words) = &mut self.focus {
            words.extend(text.chars().filter(|c| !c.is_control()).take(200));
        } else if self.setup.writes {
            self.focus = Focus::Message;
            if let Some(panel) = &mut self.panel {
                panel.focused = false;
            }
            self.composer.paste(text);
        }
    }

    /// Shows the next question, unless it is shown already. Keys go to it only if nothing is being written.
    pub(crate) fn show_question(&mut self) {
        let next = self.asks.front().filter(|_| self.setup.writes && self.caught_up);
        let shown = self.panel.as_ref().map(Panel::approval);
        if shown == next.map(|open| open.approval) {
            return;
        }
        if let Some(words) = self.panel.take().and_then(|panel| panel.words) {
            self.tell(format!("the question is closed; discarded your words: {words}"));
        }
        let free = self.composer.is_empty() && self.focus == Focus::Message;
        self.panel = self
            .asks
            .front()
            .filter(|_| self.setup.writes && self.caught_up)
            .map(|open| Panel::new(open.clone(), free, self.now));
    }

    /// The question whose lines are wanted, once.
    pub fn wants_question(&mut self) -> Option<ApprovalId> {
        self.panel.as_mut().and_then(Panel::wants)
    }

    /// The lines of a question, as the daemon rendered them; or why they cannot be shown.
    pub fn question(&mut self, approval: ApprovalId, question: Result<Box<ApprovalQuestion>, String>) {
        let now = self.now;
        if let Some(panel) = self.panel.as_mut().filter(|panel| panel.approval() == approval) {
            panel.show(question, now);
        }
    }

    pub(crate) fn look(&self) -> Look {
        Look {
            width: usize::from(self.area.width).max(10),
            theme: self.setup.theme,
            open: self.open,
        }
    }

    /// Works on the transcript as rows.
    pub(crate) fn rows<T>(&self, work: impl FnOnce(&Rows<'_>) -> T) -> T {
        let live = if self.log.at_end() {
            self.layouts.streaming(&self.thinking, &self.text, self.look())
        } else {
            Vec::new()
        };
        work(&Rows {
            entries: &self.log.entries,
            layouts: &self.layouts,
            look: self.look(),
            now: self.now,
            live: &live,
        })
    }

    /// When the screen changes next although nothing happens.
    #[must_use]
    pub fn next_change(&self) -> Option<Timestamp> {
        let guard = self
            .panel
            .as_ref()
            .filter(|panel| panel.focused && !panel.ready(self.now));
        if let Some(panel) = guard {
            return Some(panel.ready_at());
        }
        let counts = self.facts.busy() || self.facts.status.until.is_some();
        let fades = self.notice.is_some() || self.cancelling.is_some();
        (counts || fades || self.lost).then(|| self.now.plus_ms(1_000 - self.now.0 % 1_000))
    }
}

/// Keeps the last part of a long text that streams. It begins with a line.
fn shorten(text: &mut String) {
    if text.len() > MOST_TEXT {
        let from = text.ceil_char_boundary(text.len() - MOST_TEXT / 2);
        let line = text.get(from..).and_then(|rest| rest.find('\n'));
        text.drain(..line.map_or(from, |line| from + line + 1));
    }
}
