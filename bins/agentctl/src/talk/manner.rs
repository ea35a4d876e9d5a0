//! How a viewer behaves towards a session, and how the conversation ended.

use crate::talk::turn_watch::RunResult;
use agentd_protocol::{Status, Timestamp};
use tokio::time::Instant;

/// What Ctrl-C does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// The first cancels the turn, a second detaches.
    Cancel,
    /// It detaches.
    Detach,
}

/// How this viewer behaves.
#[derive(Debug)]
pub(crate) struct Manner {
    /// A person here answers approvals.
    pub(crate) answers: bool,
    /// What a person types is sent.
    pub(crate) sends: bool,
    /// A status line is shown, which counts the time from here.
    pub(crate) status: Option<Timestamp>,
    /// Print the stored lines instead of a transcript.
    pub(crate) exact: bool,
    /// Leave when only a person could help, and none is here: not for approvals that end by themselves.
    pub(crate) leaves_when: Option<Unattended>,
    /// When to cancel the turn.
    pub(crate) deadline: Option<Instant>,
    /// What Ctrl-C does.
    pub(crate) interrupt: Interrupt,
}

/// What a session without a person here does about approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unattended {
    /// It denies them itself.
    Denies,
    /// It waits.
    Waits,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum Held {
    /// The turn ended.
    Turn(RunResult),
    /// The person left, or there is no more to come.
    Detached,
    /// Time ran out; the turn, if it ended in time.
    TimedOut(Option<RunResult>),
    /// Ctrl-C; the turn, if it ended in time.
    Interrupted(Option<RunResult>),
    /// Only a person can help.
    Blocked(Status),
}
