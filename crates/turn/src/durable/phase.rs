//! The phase of a turn, according to the log.

use crate::attempts::outer::Tries;
use agentd_protocol::{ApprovalId, CallId, FailureClass, Remedy, StopReason, ThinkingLevel, Timestamp};
use serde::Serialize;

/// The current activity of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Phase {
    /// A model call comes next.
    Ready,
    /// An attempt has started and not ended.
    Streaming(Attempt),
    /// Waits for the time of the next attempt.
    BackingOff {
        /// The attempt that failed.
        last: Attempt,
        /// The time of the failure.
        failed_at: Timestamp,
        /// When the next attempt starts.
        retry_at: Timestamp,
        /// The failure class.
        class: FailureClass,
        /// The provider's message.
        message: String,
        /// The change in the next attempt.
        remedy: Option<Remedy>,
    },
    /// The model call failed for good; the turn ends.
    GaveUp {
        /// The configured name of the model that failed last.
        model: String,
        /// The failure class.
        class: FailureClass,
        /// The provider's message.
        message: String,
    },
    /// The step's calls are open.
    Calling {
        /// Why the model stopped.
        stop: StopReason,
    },
    /// The model answered and no call is open: the turn continues or ends.
    Answered {
        /// Why the model stopped.
        stop: StopReason,
        /// The model requested tools, and each call has its result.
        called: bool,
    },
    /// A person has been asked whether to continue.
    AtLimit(ApprovalId),
}

impl Phase {
    /// Whether the model call is parked.
    #[must_use]
    pub const fn parked(&self) -> bool {
        matches!(
            self,
            Self::BackingOff {
                remedy: Some(Remedy::Park),
                ..
            }
        )
    }
}

/// One attempt of a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// The logical call.
    pub call: CallId,
    /// From 1.
    pub attempt: u32,
    /// The number of the step within the turn.
    pub step: u32,
    /// The time of the start.
    pub started_at: Timestamp,
    /// Whether tools are off.
    pub tools_off: bool,
    /// Failed attempts of this call so far.
    pub failures: u32,
    /// How many of them were caused by our own bugs.
    pub internal: u32,
    /// How many of them the stutter guard failed.
    pub stutters: u32,
    /// The configured name of the model.
    pub model: String,
    /// The provider's name.
    pub provider: String,
    /// The credential of the first request.
    pub credential: Option<String>,
    /// The thinking level.
    pub thinking: Option<ThinkingLevel>,
    /// The request asks the provider to keep the prompt cached for an hour.
    pub cache_hour: bool,
    /// The attempts of the call so far.
    pub tries: Tries,
}
