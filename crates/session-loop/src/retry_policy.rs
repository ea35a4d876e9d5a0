//! The retry policy for messages between the sessions of a tree of agents: what follows the answer to each try. Pure.

use agentd_protocol::{Fault, FaultClass, RunState, Spent, Summary, TurnError};
use agentd_turn::Ended;
use std::time::Duration;

/// The number of tries.
const TRIES: u32 = 60;
/// The first pause between two tries; it doubles each time.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(10);
/// The timeout of a command.
pub const COMMAND: Duration = Duration::from_secs(30);
/// The fault code of a session that is stopped until a person resumes it.
const FAULTED: &str = "faulted";

/// The next action after a refused try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing: this daemon, or this supervisor, is ending, and the next one starts over.
    Over,
    /// Try again after a pause.
    Again,
    /// The session is closed already: ask it to report how it ended.
    Tell,
    /// It will never succeed, or not before a person intervenes. Holds the reason.
    GiveUp(String),
}

/// Decides after a failure to create a child or to ask it for a report.
#[must_use]
pub fn after_creation(fault: &Fault) -> Next {
    match fault.class {
        _ if fault.code == FAULTED => Next::GiveUp(said(fault)),
        FaultClass::Invalid | FaultClass::Denied | FaultClass::NotFound | FaultClass::Limit => {
            Next::GiveUp(said(fault))
        }
        _ if ends(fault) => Next::Over,
        _ => Next::Again,
    }
}

/// Decides after a failure to close a child.
#[must_use]
pub fn after_stop(fault: &Fault) -> Next {
    match fault.class {
        FaultClass::NotFound => Next::GiveUp("it no longer exists".to_owned()),
        _ if fault.code == "session_closed" => Next::Tell,
        _ if fault.code == FAULTED => Next::GiveUp(said(fault)),
        _ if ends(fault) => Next::Over,
        _ => Next::Again,
    }
}

/// Decides after a parent refused a completion report. True: the parent knows, or does not want to know. False: this
/// daemon cannot reach it. `None`: try again.
#[must_use]
pub fn after_report(fault: &Fault) -> Option<bool> {
    if fault.code == "not_awaited" || fault.class == FaultClass::NotFound {
        return Some(true);
    }
    ends(fault).then_some(false)
}

/// A command was accepted, but its loop or the supervisor went down before it answered. The command may have been carried
/// out; a retry finds out.
#[must_use]
pub fn unanswered() -> Fault {
    Fault::unavailable("no_answer", "the session stopped before it answered")
}

/// Whether a child may have missed a change in its parent: a stricter mode, a pause or its end.
#[must_use]
pub fn missed(child: &Summary, parent: &Summary) -> bool {
    let strict = child.mode.stricter(parent.mode) == child.mode;
    child.status.state != RunState::Closed && (!strict || parent.paused || child.paused)
}

/// The spending of a session, including the sessions below it that have ended.
#[must_use]
pub fn spent_of(summary: &Summary) -> Spent {
    let own = Spent {
        tokens: summary.usage.total(),
        usd: summary.cost_usd,
        time_ms: summary.time_ms,
        steps: summary.steps,
    };
    own.and(summary.below)
}

/// The outcome of a child that cannot exist. It may have existed before: what it spent is still counted.
#[must_use]
pub fn not_started(why: String, spent: Spent) -> Ended {
    Ended {
        reason: None,
        text: String::new(),
        error: Some(TurnError {
            class: "not_started".to_owned(),
            message: why,
        }),
        spent,
    }
}

/// The pauses between tries.
pub fn pauses() -> impl Iterator<Item = Duration> {
    (0..TRIES).scan(PAUSE, |pause, _| {
        let now = *pause;
        *pause = LONGEST.min(now.saturating_mul(2));
        Some(now)
    })
}

fn ends(fault: &Fault) -> bool {
    matches!(fault.code.as_str(), "draining" | "supervisor_gone")
}

fn said(fault: &Fault) -> String {
    match &fault.hint {
        Some(hint) => format!("{} ({hint})", fault.message),
        None => fault.message.clone(),
    }
}
