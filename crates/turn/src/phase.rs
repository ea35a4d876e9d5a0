//! What a turn is doing, as the log tells it.

use crate::outer::Tries;
use agentd_protocol::{ApprovalId, CallId, FailureClass, Remedy, StopReason, ThinkingLevel, Timestamp};
use serde::{Deserialize, Serialize};

/// What a turn is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The next thing is a model call.
    Ready,
    /// An attempt was started and has not ended.
    Streaming(Attempt),
    /// The next attempt starts then.
    BackingOff {
        /// The attempt that failed.
        last: Attempt,
        /// When it failed.
        failed_at: Timestamp,
        /// When the next one starts.
        retry_at: Timestamp,
        /// Why it failed.
        class: FailureClass,
        /// What the provider said.
        message: String,
        /// What it does differently.
        #[serde(default)]
        remedy: Option<Remedy>,
    },
    /// The model call failed for good; the turn ends.
    GaveUp {
        /// The configured name of the model that failed last.
        #[serde(default)]
        model: String,
        /// The class.
        class: FailureClass,
        /// What the provider said.
        message: String,
    },
    /// The step's calls are open.
    Calling {
        /// Why the model stopped.
        stop: StopReason,
    },
    /// The model answered and no call is open: the turn goes on or ends.
    Answered {
        /// Why the model stopped.
        stop: StopReason,
        /// It had asked for tools, and each has its result.
        called: bool,
    },
    /// A person is asked whether to go on.
    AtLimit(ApprovalId),
}

impl Phase {
    /// The model call waits at rest.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The logical call.
    pub call: CallId,
    /// From 1.
    pub attempt: u32,
    /// The step of the turn.
    pub step: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// Without tools.
    pub tools_off: bool,
    /// Failed attempts of this call.
    pub failures: u32,
    /// How many of them were our own bugs.
    pub internal: u32,
    /// How many of them stuttered.
    pub stutters: u32,
    /// The configured name of the model.
    #[serde(default)]
    pub model: String,
    /// The provider's name.
    #[serde(default)]
    pub provider: String,
    /// The credential that it begins with.
    #[serde(default)]
    pub credential: Option<String>,
    /// How hard the model is asked to think.
    #[serde(default)]
    pub thinking: Option<ThinkingLevel>,
    /// What the call has tried so far.
    #[serde(default)]
    pub tries: Tries,
}
