//! The arguments of an admission, and what it reports.

use agentd_actor_kit::{Grant, Refusal};
use agentd_protocol::FailureClass;
use agentd_settings::{RatesConfig, SchedulerConfig};

/// The arguments of a provider's admission.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The most calls in flight.
    pub permits: u32,
    /// How many of them this node may have at first; absent: the node is alone and has all.
    pub share: Option<u32>,
    /// The names of its credentials.
    pub credentials: Vec<String>,
    /// The rate limits of one credential, per minute.
    pub rates: RatesConfig,
    /// Shares, cooldowns, circuit breaker.
    pub scheduler: SchedulerConfig,
    /// Calls do not queue for a longer pause.
    pub patience_ms: u64,
}

/// The outcome for one waiting call.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// The call may start.
    Granted(T, Grant),
    /// The call is refused: it would have to wait too long.
    Refused(T, Refusal),
}

/// A change that affects everyone, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The provider keeps failing: calls are suspended.
    Broken {
        /// For how long, in milliseconds.
        ms: u64,
    },
    /// A credential has a cooldown.
    Cooling {
        /// The credential.
        credential: Option<String>,
        /// The class of the failure.
        class: FailureClass,
        /// For how long, in milliseconds.
        ms: u64,
    },
}
