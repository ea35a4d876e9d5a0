//! A window of a session's log as entries. Older and newer pages are loaded on demand, and what is far away is dropped.

use crate::entry::{Card, Child, Entry, Kind, Place, Stage, bounded};
use agentd_protocol::{
    ApprovalId, Block, Decision, Event, EventBody, FailureClass, InputId, Seq, SessionId, ToolCallId,
};
use agentd_viewer::{Line, Tag, Transcript, input_text, text_of, thoughts_of};
use std::collections::{HashMap, VecDeque};

/// The most entries of the window, and their size.
const MOST_ENTRIES: usize = 4_000;
const MOST_BYTES: usize = 12 << 20;

/// The window.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) entries: VecDeque<Entry>,
    /// The first and the last event of the window.
    pub(crate) first: Seq,
    pub(crate) last: Seq,
    /// The last event that exists.
    pub(crate) head: Seq,
    bytes: usize,
    next_id: u64,
    lines: Transcript,
    /// The calls that approvals are about.
    asked: HashMap<ApprovalId, ToolCallId>,
}

/// An end of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            last: 0,
            head: 0,
            bytes: 0,
            next_id: 1,
            lines: Transcript::new(usize::MAX),
            asked: HashMap::new(),
        }
    }

    /// Whether the window reaches the end of the log.
    pub(crate) const fn at_end(&self) -> bool {
        self.last >= self.head
    }

    /// Whether there are events before the window.
    pub(crate) const fn has_older(&self) -> bool {
        self.first > 1
    }

    /// Takes in a live event. Returns false if the window is elsewhere.
    pub(crate) fn live(&mut self, event: &Event) -> bool {
        let at_end = self.at_end();
        self.head = self.head.max(event.seq);
        if !at_end {
            return false;
        }
        self.append(event);
        self.trim(End::Front);
        true
    }

    /// Takes in a page that follows the window.
    pub(crate) fn newer(&mut self, page: &[Event], head: Seq) {
        self.head = self.head.max(head);
        for event in page {
            if event.seq > self.last {
                self.append(event);
            }
        }
        if page.is_empty() {
            self.last = self.head;
        }
        self.trim(End::Front);
    }

    /// Takes in a page that precedes the window.
    pub(crate) fn older(&mut self, page: &[Event]) {
        let mut before = Self::new();
        before.next_id = self.next_id;
        for event in page.iter().filter(|event| event.seq < self.first) {
            before.append(event);
        }
        let Some(first) = page.first() else {
            self.first = 1;
            return;
        };
        self.first = first.seq.min(self.first);
        self.next_id = before.next_id;
        self.asked.extend(before.asked);
        for mut entry in before.entries.into_iter().rev() {
            if let Kind::Tool(card) = &mut entry.kind
                && !card.ended()
            {
                self.reunite(card);
            }
            self.bytes += entry.weight();
            self.entries.push_front(entry);
        }
        self.trim(End::Back);
    }

    /// Replaces the window by the last page of the log.
    pub(crate) fn replace(&mut self, page: &[Event], head: Seq) {
        self.entries.clear();
        self.bytes = 0;
        self.first = page.first().map_or(head, |event| event.seq);
        self.last = self.first.saturating_sub(1);
        self.newer(page, head);
    }

    /// A page ended between a call and its result: the call takes over what the window has of it.
    fn reunite(&mut self, card: &mut Card) {
        let same = |entry: &Entry| matches!(&entry.kind, Kind::Tool(other) if other.call == card.call);
        let Some(at) = self.entries.iter().position(same) else {
            return;
        };
        let Some(entry) = self.entries.remove(at) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(entry.weight());
        if let Kind::Tool(later) = entry.kind {
            card.stage = later.stage;
            card.took_ms = later.took_ms;
            card.unknown = later.unknown;
            card.output = later.output;
            card.child = later.child.or(card.child.take());
            if card.title.is_empty() {
                card.title = later.title;
            }
        }
    }

    fn append(&mut self, event: &Event) {
        if self.first == 0 {
            self.first = event.seq;
        }
        self.last = event.seq;
        self.head = self.head.max(event.seq);
        self.fold(event);
        self.images(event);
    }

    fn trim(&mut self, end: End) {
        while self.entries.len() > MOST_ENTRIES || self.bytes > MOST_BYTES {
            let gone = match end {
                End::Front => self.entries.pop_front(),
                End::Back => self.entries.pop_back(),
            };
            let Some(gone) = gone else { break };
            self.bytes = self.bytes.saturating_sub(gone.weight());
            match end {
                End::Front => self.first = self.entries.front().map_or(self.last, |entry| entry.seq),
                End::Back => self.last = self.entries.back().map_or(self.first, |entry| entry.seq),
            }
        }
    }

    fn put(&mut self, event: &Event, kind: Kind) {
        let mut entry = Entry::new(event, kind);
        entry.id = self.next_id;
        self.next_id += 1;
        self.bytes += entry.weight();
        self.entries.push_back(entry);
    }

    /// Notes which event has the images of an entry.
    fn images(&mut self, event: &Event) {
        let image = |block: &Block| matches!(block, Block::Image { .. });
        let of = match &event.body {
            EventBody::InputAccepted(accepted) if accepted.content.iter().any(image) => None,
            EventBody::ToolFinished(call) if !call.outcome.media.is_empty() => Some(call.tool_call),
            _ => return,
        };
        let its = |entry: &&mut Entry| match (&entry.kind, of) {
            (Kind::Tool(card), Some(call)) => card.call == call,
            (Kind::User { .. }, None) => true,
            _ => false,
        };
        if let Some(entry) = self.entries.iter_mut().rev().find(its) {
            entry.images = Some(event.seq);
        }
    }

    /// The card of a call, newest first.
    pub(crate) fn card(&mut self, call: ToolCallId) -> Option<&mut Card> {
        let entries = self.entries.iter_mut().rev();
        let mut cards = entries.filter_map(|entry| {
            let id = entry.id;
            if let Kind::Tool(card) = &mut entry.kind {
                (card.call == call).then_some((id, &mut entry.revision, card))
            } else {
                None
            }
        });
        let (_, revision, card) = cards.next()?;
        *revision += 1;
        Some(card)
    }

    /// Changes what is known of a sub-agent.
    pub(crate) fn child(&mut self, session: SessionId, change: impl FnOnce(&mut Child) -> bool) {
        for entry in self.entries.iter_mut().rev() {
            if let Kind::Tool(card) = &mut entry.kind
                && let Some(child) = card.child.as_mut().filter(|child| child.session == session)
            {
                entry.revision += u64::from(change(child));
                return;
            }
        }
    }

    fn card_or_new(&mut self, event: &Event, call: ToolCallId, name: &str) -> Option<&mut Card> {
        if self.card(call).is_none() {
            self.put(event, Kind::Tool(Box::new(Card::new(call, name))));
        }
        self.card(call)
    }

    fn place(&mut self, inputs: &[InputId], now: Place) {
        for entry in self.entries.iter_mut().rev() {
            if let Kind::User { input, place, .. } = &mut entry.kind
                && inputs.contains(input)
                && *place != now
            {
                *place = now;
                entry.revision += 1;
            }
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all others are lines, as in line mode"
    )]
    fn fold(&mut self, event: &Event) {
        match &event.body {
            EventBody::InputAccepted(accepted) => {
                let text = bounded(&input_text(&accepted.content));
                let (input, place) = (accepted.input, Place::Queued(accepted.delivery));
                self.put(event, Kind::User { input, text, place });
            }
            EventBody::TurnStarted(turn) => self.place(&turn.inputs, Place::Joined),
            EventBody::ModelStarted(started) => self.place(&started.inputs, Place::Joined),
            EventBody::InputCancelled(cancelled) => self.place(&[cancelled.input], Place::Withdrawn),
            EventBody::ModelFinished(answer) => self.said(event, &answer.content),
            EventBody::ModelFailed(failed) if failed.class == FailureClass::Cancelled => {
                if let Some(partial) = failed.partial.as_ref().filter(|text| !text.trim().is_empty()) {
                    self.put(event, Kind::Said(bounded(partial)));
                }
            }
            EventBody::ToolProposed(call) => {
                if let Some(card) = self.card_or_new(event, call.tool_call, &call.name) {
                    card.input = Some(call.input.clone());
                }
            }
            EventBody::ToolStarted(call) => {
                if let Some(card) = self.card_or_new(event, call.tool_call, "") {
                    card.title.clone_from(&call.title);
                    card.stage = Stage::Running(event.at);
                }
            }
            EventBody::ToolFinished(call) => {
                if let Some(card) = self.card_or_new(event, call.tool_call, "a tool call") {
                    card.finish(call);
                }
            }
            EventBody::SubagentStarted(started) => {
                self.started(event, started.tool_call, Child::started(started));
            }
            EventBody::SubagentFinished(finished) => {
                self.started(event, finished.tool_call, Child::finished(finished));
            }
            EventBody::ApprovalAsked(ask) if ask.tool_call.is_some() => {
                let call = ask.tool_call.unwrap_or(ToolCallId::NIL);
                self.asked.insert(ask.approval, call);
                if let Some(card) = self.card_or_new(event, call, "") {
                    card.title.clone_from(&ask.title);
                    card.stage = Stage::Asked;
                }
            }
            EventBody::ApprovalDecided(decided) => {
                let call = self.asked.remove(&decided.approval);
                if let Some(card) = call.and_then(|call| self.card(call))
                    && card.stage == Stage::Asked
                {
                    card.stage = Stage::Proposed;
                }
                if decided.decision != Decision::Withdrawn {
                    self.others(event);
                }
            }
            _ => self.others(event),
        }
    }

    /// A call started a sub-agent, or more is known of it.
    fn started(&mut self, event: &Event, call: ToolCallId, child: Child) {
        if let Some(card) = self.card_or_new(event, call, "") {
            card.child = Some(child);
        }
    }

    fn said(&mut self, event: &Event, content: &[Block]) {
        let thoughts = thoughts_of(content);
        if !thoughts.trim().is_empty() {
            self.put(event, Kind::Thought(bounded(&thoughts)));
        }
        let text = text_of(content);
        if !text.trim().is_empty() {
            self.put(event, Kind::Said(bounded(&text)));
        }
    }

    fn others(&mut self, event: &Event) {
        for mut line in self.lines.lines(event) {
            // The line of a step that a card shows already.
            if line.text.trim().is_empty() {
                continue;
            }
            shorten(&mut line);
            self.put(event, Kind::Line(line));
        }
    }
}

fn shorten(line: &mut Line) {
    line.text = bounded(&line.text);
    line.below.truncate(2_000);
    if line.tag == Tag::Model {
        "said".clone_into(&mut line.word);
    }
}
