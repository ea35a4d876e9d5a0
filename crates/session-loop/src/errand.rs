//! What the sessions of a tree of agents say to each other, as decisions: what follows the answer to each try. Pure.

use agentd_protocol::{Fault, FaultClass, RunState, Spent, Summary, TurnError};
use agentd_turn::Ended;
use std::time::Duration;

/// How often something is tried.
const TRIES: u32 = 60;
/// The first pause between two tries; it doubles.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(10);
/// How long a command may take.
pub const COMMAND: Duration = Duration::from_secs(30);
/// The fault of a session that waits for a person.
const FAULTED: &str = "faulted";

/// What follows a try that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing: this daemon, or this supervisor, ends, and the next one begins again.
    Over,
    /// The same once more, after a pause.
    Again,
    /// The session is closed already: it is to tell how it ended.
    Tell,
    /// It will never go, or only when a person looked at it. Why.
    GiveUp(String),
}

/// A child could not be created, or asked how it is.
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

/// A child could not be closed.
#[must_use]
pub fn after_stop(fault: &Fault) -> Next {
    match fault.class {
        FaultClass::NotFound => Next::GiveUp("it is not there any more".to_owned()),
        _ if fault.code == "session_closed" => Next::Tell,
        _ if fault.code == FAULTED => Next::GiveUp(said(fault)),
        _ if ends(fault) => Next::Over,
        _ => Next::Again,
    }
}

/// A parent refused the word that a child ended. True when it knows or does not want to, false when it cannot be reached
/// by this daemon; nothing when it is told again.
#[must_use]
pub fn after_report(fault: &Fault) -> Option<bool> {
    if fault.code == "not_awaited" || fault.class == FaultClass::NotFound {
        return Some(true);
    }
    ends(fault).then_some(false)
}

/// A command was taken, and nobody answers it: the loop that had it went down, or the supervisor did. It may have been
/// carried out. Whoever asks again finds out which.
#[must_use]
pub fn unanswered() -> Fault {
    Fault::unavailable("no_answer", "the session went down before it answered")
}

/// Whether a child may have missed a word of its parent: a stricter mode, a pause or its end.
#[must_use]
pub fn missed(child: &Summary, parent: &Summary) -> bool {
    let strict = child.mode.stricter(parent.mode) == child.mode;
    child.status.state != RunState::Closed && (!strict || parent.paused || child.paused)
}

/// What a session spent, with those below it that have ended.
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

/// How a child ended that cannot be. It may have been there: what it spent stays spent.
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

/// The pauses between the tries.
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
