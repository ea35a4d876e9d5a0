//! A viewer's behaviour towards a session, and the ways in which a conversation ends.

use crate::interactive::turn_watch::RunResult;
use agentd_protocol::{Status, Timestamp};
use tokio::time::Instant;

/// The effect of Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// The first cancels the turn, a second detaches.
    Cancel,
    /// It detaches.
    Detach,
}

/// A viewer's behaviour.
#[derive(Debug)]
pub(crate) struct Manner {
    /// Whether a person here answers approvals.
    pub(crate) answers: bool,
    /// Whether typed lines are sent to the session.
    pub(crate) sends: bool,
    /// The start time for a status line; `None` shows none.
    pub(crate) status: Option<Timestamp>,
    /// Print the stored lines instead of a transcript.
    pub(crate) exact: bool,
    /// Set if no person is here: leave when only a person could help. Not for approvals that the session denies itself.
    pub(crate) leaves_when: Option<Unattended>,
    /// When to cancel the turn.
    pub(crate) deadline: Option<Instant>,
    /// The effect of Ctrl-C.
    pub(crate) interrupt: Interrupt,
}

/// How a session without an attached person handles approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unattended {
    /// It denies them itself.
    Denies,
    /// It waits.
    Waits,
}

/// How the conversation ended.
#[derive(Debug)]
pub(crate) enum Held {
    /// The turn ended.
    Turn(RunResult),
    /// The person left, or the session has ended.
    Detached,
    /// The timeout expired; with the turn's result, if it ended in time.
    TimedOut(Option<RunResult>),
    /// Ctrl-C was pressed; with the turn's result, if it ended in time.
    Interrupted(Option<RunResult>),
    /// Only a person can help.
    Blocked(Status),
}
