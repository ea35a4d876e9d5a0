//! Lifecycle hooks: the events other than tool calls that hooks learn of.

use agentd_protocol::{ApprovalId, CallId, HookEvent, InputId, TurnId};

/// A lifecycle event for hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LifecycleEvent {
    /// The session begins.
    SessionStart,
    /// The session is closed.
    SessionEnd {
        /// The reason.
        reason: String,
    },
    /// An input is about to join.
    Prompt(InputId),
    /// A turn is about to end by itself.
    Stop {
        /// The turn.
        turn: TurnId,
        /// The model's last text.
        text: String,
        /// How often hooks have made it continue.
        rounds: u32,
        /// The session has a parent.
        child: bool,
    },
    /// A person has to be notified.
    Notification {
        /// The kind of notification.
        notice: Notice,
        /// The readable text.
        message: String,
        /// The approval that it is about.
        approval: Option<ApprovalId>,
    },
    /// A summary is about to replace the beginning of the conversation.
    Compaction {
        /// The model call that needs it.
        call: CallId,
        /// The attempt whose failure caused it.
        attempt: u32,
        /// The current size in tokens, estimated.
        tokens: u64,
        /// The target size in tokens.
        target: u64,
    },
}

/// Kinds of notifications for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// An approval was requested.
    Approval,
    /// A turn ended; the session waits for input.
    Idle,
    /// A turn failed.
    Failed,
}

impl Notice {
    /// The notice's name for hooks.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Idle => "idle",
            Self::Failed => "failed",
        }
    }
}

impl LifecycleEvent {
    /// The hook event to run.
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

    /// Whether the agent waits for the answer.
    pub(crate) const fn holds_up(&self) -> bool {
        !matches!(self, Self::SessionEnd { .. } | Self::Notification { .. })
    }
}
