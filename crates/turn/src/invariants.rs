//! The invariants as predicates over what is visible from outside: the events of a log, the effects of its owner, the
//! requests to a model. They do not depend on how an agent decides, so that both cannot have the same bug. The
//! simulator checks all of them at every step; a debug build of the daemon checks the cheap ones at every append.

mod calls;
mod request;
mod spent;

use agentd_protocol::{ApprovalId, CallId, Event, EventBody, InputId, ModelStarted, Seq, ToolCallId};
use calls::Calls;
pub use request::{sound_request, stable_prefix};
use spent::Spent;
use std::collections::BTreeSet;
use std::fmt;

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The invariant: `I3`.
    pub invariant: &'static str,
    /// What happened.
    pub what: String,
}

impl Violation {
    /// A violation of this invariant.
    pub fn of(invariant: &'static str, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { invariant, what }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

impl std::error::Error for Violation {}

/// The result of a predicate: the invariant holds, or not.
pub type Held = Result<(), Violation>;

/// I2 for event readers: each event once, in order, from some seq on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// The last seq that was seen.
    pub seen: Seq,
}

impl Order {
    /// Starts after this seq.
    #[must_use]
    pub const fn after(seen: Seq) -> Self {
        Self { seen }
    }

    /// Checks the next seq.
    ///
    /// # Errors
    /// It does not follow the last one.
    pub fn next(&mut self, seq: Seq) -> Held {
        if seq != self.seen.saturating_add(1) {
            let what = format!("event {seq} was told after event {}", self.seen);
            return Err(Violation::of("I2", what));
        }
        self.seen = seq;
        Ok(())
    }
}

/// Watches one session: its log, and what its owner does. Constant time per event, memory only for what is open.
#[derive(Debug, Clone, Default)]
pub struct Witness {
    order: Order,
    calls: Calls,
    spent: Spent,
    /// The running attempt.
    streaming: Option<(CallId, u32)>,
    approvals: BTreeSet<ApprovalId>,
    inbox: BTreeSet<InputId>,
    turn: bool,
    closed: bool,
}

impl Witness {
    /// The last seq that was seen.
    #[must_use]
    pub const fn seen(&self) -> Seq {
        self.order.seen
    }

    /// Checks the next event of the log.
    ///
    /// # Errors
    /// The event breaks an invariant.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most events promise nothing that could be broken"
    )]
    pub fn see(&mut self, event: &Event) -> Held {
        self.order.next(event.seq)?;
        self.spent.see(&event.body);
        match &event.body {
            EventBody::InputAccepted(accepted) => self.accepted(accepted.input),
            EventBody::InputCancelled(cancelled) => self.leaves(cancelled.input),
            EventBody::TurnStarted(_) => self.turn_starts(),
            EventBody::TurnFinished(_) => self.turn_ends(),
            EventBody::ModelStarted(started) => self.model_starts(started),
            EventBody::ModelFinished(finished) => {
                self.attempt_ends((finished.call, finished.attempt))?;
                self.calls.named(&finished.content)
            }
            EventBody::ModelFailed(failed) => self.attempt_ends((failed.call, failed.attempt)),
            EventBody::ToolProposed(proposed) => self.calls.proposed(proposed.tool_call),
            EventBody::VerdictGiven(given) => self.calls.judged(given),
            EventBody::ApprovalAsked(asked) => {
                if !self.approvals.insert(asked.approval) {
                    return Err(Violation::of("I3", "an approval was asked twice"));
                }
                self.calls.asked(asked)
            }
            EventBody::ApprovalDecided(decided) => {
                if !self.approvals.remove(&decided.approval) {
                    return Err(Violation::of("I3", "an approval was decided that was not open"));
                }
                self.calls.decided(decided)
            }
            EventBody::ToolStarted(started) => self.calls.started(started, event.seq),
            EventBody::ToolFinished(finished) => self.calls.finished(finished),
            EventBody::SessionRecovered(_) => {
                self.streaming = None;
                Ok(())
            }
            EventBody::SessionClosed(_) => self.closes(),
            _ => Ok(()),
        }
    }

    /// Checks a request to a model: it belongs to the running attempt, and every call has an answer.
    ///
    /// # Errors
    /// The request must not be sent.
    pub fn asks_model(&self, call: CallId, attempt: u32) -> Held {
        if self.streaming != Some((call, attempt)) {
            return Err(Violation::of(
                "I4",
                "a request is sent that the log does not record",
            ));
        }
        self.calls.all_answered("a request goes to the model")
    }

    /// Checks a tool that begins to run while the log is durable up to `durable`.
    ///
    /// # Errors
    /// The intent is not durable, or the tool ran before and must not be repeated.
    pub fn runs_tool(&mut self, call: ToolCallId, durable: Seq) -> Held {
        self.calls.runs(call, durable)
    }

    /// Whether a call was started and has no result.
    #[must_use]
    pub fn is_running(&self, call: ToolCallId) -> bool {
        self.calls.is_running(call)
    }

    /// Checks a session that ended or rests between turns: nothing may be open.
    ///
    /// # Errors
    /// Something is open.
    pub fn settled(&self) -> Held {
        self.calls.all_answered("the session rests")?;
        if self.streaming.is_some() || self.turn {
            return Err(Violation::of("I6", "a turn is open, and nothing goes on"));
        }
        Ok(())
    }

    fn accepted(&mut self, input: InputId) -> Held {
        if self.closed {
            return Err(Violation::of("I1", "a closed session took an input"));
        }
        match self.inbox.insert(input) {
            true => Ok(()),
            false => Err(Violation::of("I1", "an input was accepted twice")),
        }
    }

    fn leaves(&mut self, input: InputId) -> Held {
        match self.inbox.remove(&input) {
            true => Ok(()),
            false => Err(Violation::of("I1", "an input joined or left that did not wait")),
        }
    }

    fn turn_starts(&mut self) -> Held {
        match std::mem::replace(&mut self.turn, true) {
            false => Ok(()),
            true => Err(Violation::of("I2", "a turn began in a turn")),
        }
    }

    fn turn_ends(&mut self) -> Held {
        self.calls.all_answered("the turn ended")?;
        if self.streaming.is_some() || !self.approvals.is_empty() {
            let what = "a turn ended while a model answered or a person was asked";
            return Err(Violation::of("I3", what));
        }
        self.calls = Calls::default();
        match std::mem::replace(&mut self.turn, false) {
            true => Ok(()),
            false => Err(Violation::of("I2", "a turn ended that did not run")),
        }
    }

    fn model_starts(&mut self, started: &ModelStarted) -> Held {
        if self.streaming.is_some() {
            return Err(Violation::of("I4", "an attempt began before the other one ended"));
        }
        self.calls.all_answered("a model was asked")?;
        self.spent.may_ask(started)?;
        for input in &started.inputs {
            self.leaves(*input)?;
        }
        self.streaming = Some((started.call, started.attempt));
        Ok(())
    }

    fn attempt_ends(&mut self, attempt: (CallId, u32)) -> Held {
        match self.streaming.take() {
            Some(streaming) if streaming == attempt => Ok(()),
            _ => Err(Violation::of("I3", "an attempt ended that did not run")),
        }
    }

    fn closes(&mut self) -> Held {
        self.closed = true;
        self.inbox.clear();
        self.settled()
    }
}
