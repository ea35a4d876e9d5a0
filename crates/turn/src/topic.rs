//! What hooks are told of, besides calls.

use agentd_protocol::{ApprovalId, CallId, HookEvent, InputId, TurnId};

/// What hooks are told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    /// The session begins.
    SessionStart,
    /// The session is closed.
    SessionEnd {
        /// Why.
        reason: String,
    },
    /// An input is to join.
    Prompt(InputId),
    /// A turn is about to end by itself.
    Stop {
        /// Which.
        turn: TurnId,
        /// The model's last words.
        text: String,
        /// How often hooks had it go on.
        rounds: u32,
        /// The session has a parent.
        child: bool,
    },
    /// A person has to be told.
    Notification {
        /// Of what.
        notice: Notice,
        /// In words.
        message: String,
        /// The question.
        approval: Option<ApprovalId>,
    },
    /// The beginning of the conversation is to become a summary.
    Compaction {
        /// For which model call.
        call: CallId,
        /// The attempt that failed for it.
        attempt: u32,
        /// About so many tokens there are.
        tokens: u64,
        /// So many there may be.
        target: u64,
    },
}

/// What a person has to be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Somebody is asked.
    Approval,
    /// A turn ended, and the session waits for input.
    Idle,
    /// A turn failed.
    Failed,
}

impl Notice {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Idle => "idle",
            Self::Failed => "failed",
        }
    }
}

impl Topic {
    /// The event of the hooks that are told.
    #[must_use]
    pub const fn event(&self) -> HookEvent {
        match self {
            Self::SessionStart => HookEvent::SessionStart,
            Self::SessionEnd { .. } => HookEvent::SessionEnd,
            Self::Prompt(_) => HookEvent::UserPromptSubmit,
            Self::Stop { child: false, .. } => HookEvent::Stop,
            Self::Stop { child: true, .. } => HookEvent::SubagentStop,
            Self::Notification { .. } => HookEvent::Notification,
            Self::Compaction { .. } => HookEvent::Compaction,
        }
    }

    /// The agent waits for the answer.
    pub(crate) const fn holds_up(&self) -> bool {
        !matches!(self, Self::SessionEnd { .. } | Self::Notification { .. })
    }
}
