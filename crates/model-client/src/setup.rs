//! What an admission is made from, and what it says.

use agentd_actor_kit::{Grant, Refusal};
use agentd_protocol::FailureClass;
use agentd_settings::{RatesConfig, SchedulerConfig};

/// What the admission of a provider is made from.
#[derive(Debug, Clone)]
pub struct Setup {
    /// How many calls may be in flight.
    pub permits: u32,
    /// The names of its credentials.
    pub credentials: Vec<String>,
    /// What one credential may use in a minute.
    pub rates: RatesConfig,
    /// Shares, cooldowns, the circuit.
    pub scheduler: SchedulerConfig,
    /// A longer pause is not waited for in line.
    pub patience_ms: u64,
}

/// What happens next to somebody who waits.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// It may go.
    Granted(T, Grant),
    /// It may not, and not soon.
    Refused(T, Refusal),
}

/// What changed for everybody, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The provider keeps failing: nobody calls it for so long.
    Broken {
        /// Milliseconds.
        ms: u64,
    },
    /// A credential is left alone for so long.
    Cooling {
        /// Which.
        credential: Option<String>,
        /// Why.
        class: FailureClass,
        /// Milliseconds.
        ms: u64,
    },
}
