//! The settings of a session's view, and its requests to the caller.

use crate::composer::Proposal;
use crate::theme::Theme;
use agentd_protocol::{Delivery, InputId, OpenApproval, PermissionMode, Seq, SessionId};
use std::collections::BTreeMap;

/// A request from the view to its caller.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Handle a written message or command.
    Send {
        /// The text.
        text: String,
        /// How it joins a running turn; absent: as the daemon decides.
        delivery: Option<Delivery>,
    },
    /// Answer an open question with a line, as in line mode.
    Answer {
        /// The question.
        approval: Box<OpenApproval>,
        /// The line: `y`, `s`, `a`, `n REASON`, a number, or words.
        line: String,
        /// The hash of the question, if the whole of it was on the screen.
        shown: Option<String>,
    },
    /// End the running turn.
    Cancel,
    /// Change the permission mode.
    Mode(PermissionMode),
    /// Take back a queued input.
    Withdraw(InputId),
    /// Show another session; this one comes back when the person leaves it.
    Open(SessionId),
    /// Load the page of the log before this event.
    Older(Seq),
    /// Load the page of the log after this event.
    Newer(Seq),
    /// Load the end of the log.
    Tail,
    /// Put a text on the clipboard.
    Copy(String),
    /// Show the whole transcript in the pager.
    Pager,
    /// Show the images of this event.
    Images(Seq),
    /// Edit the message in the person's editor.
    Editor(String),
    /// Find files whose path begins like this.
    Files(String),
    /// Stop this program as a job.
    Suspend,
    /// Redraw the whole screen.
    Redraw,
    /// Leave; the session continues.
    Detach,
}

/// Where keys go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Focus {
    /// To the message, or to the open question.
    Message,
    /// To an input that waits.
    Queue(InputId),
    /// To the transcript.
    Transcript,
    /// To the words of a search.
    Search(String),
}

/// The settings of a view.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The styles.
    pub theme: Theme,
    /// Whether a person may answer and send.
    pub writes: bool,
    /// Earlier messages, the oldest first.
    pub history: Vec<String>,
    /// Commands that a message may begin with.
    pub commands: Vec<Proposal>,
    /// The context windows of the models, by their configured names.
    pub windows: BTreeMap<String, u64>,
    /// The two keys that detach, as letters with Ctrl.
    pub detach: (char, char),
    /// Whether reasoning and outputs are unfolded from the beginning.
    pub open: bool,
}
