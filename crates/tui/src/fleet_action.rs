//! The state of the fleet as the daemon reports it, and the requests of the fleet's view to the caller.

use agentd_protocol::{FleetCounts, ModelStatus, OpenApproval, SessionId, Spent, Summary};

/// The state of the fleet.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The node's name.
    pub node: String,
    /// The first sessions in the wanted order.
    pub rows: Vec<Summary>,
    /// Numbers of sessions.
    pub counts: FleetCounts,
    /// The models and the health of their providers.
    pub models: Vec<ModelStatus>,
    /// Open approvals of all sessions.
    pub approvals: usize,
    /// Steps and cost of all sessions, if they were read.
    pub spent: Option<Spent>,
}

/// A request from the view to its caller.
#[derive(Debug, Clone, PartialEq)]
pub enum FleetAction {
    /// Show a session.
    Attach(SessionId),
    /// Go through the open questions of the sessions that the table may show.
    Inbox,
    /// Run another verb; the flag asks to wait for a key before coming back.
    Verb(Vec<String>, bool),
    /// Run a typed command line, and wait for a key before coming back.
    Command(String),
    /// Cancel the turns of these sessions.
    Cancel(Vec<SessionId>),
    /// Pause these sessions.
    Pause(Vec<SessionId>),
    /// Resume these sessions.
    Resume(Vec<SessionId>),
    /// Answer an open question with a line, as in line mode.
    Answer {
        /// The question.
        approval: Box<OpenApproval>,
        /// The line.
        line: String,
        /// The hash of the question, if the whole of it was on the screen.
        shown: Option<String>,
    },
    /// Ask the daemon again, because the wanted rows changed.
    Refresh,
    /// Stop this program as a job.
    Suspend,
    /// Redraw the whole screen.
    Redraw,
    /// Leave.
    Quit,
}
