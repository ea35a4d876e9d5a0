//! The source of time and entropy.

use agentd_protocol::{Stamp, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// The source of stamps: the system's clock, or (in tests) tokio's, which can be paused.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The system's clock and the system's entropy.
    System,
    /// Tokio's clock from a fixed start. The entropy is real here, too.
    Virtual {
        /// The time at `origin`.
        start: Timestamp,
        /// The instant that corresponds to `start`.
        origin: Instant,
    },
}

impl Clock {
    /// A virtual clock that reads `start` now and then follows tokio's time.
    #[must_use]
    pub fn virtual_from(start: Timestamp) -> Self {
        Self::Virtual {
            start,
            origin: Instant::now(),
        }
    }

    /// The current time.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system's clock"
    )]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
            }
            Self::Virtual { start, origin } => {
                start.plus_ms(u64::try_from(origin.elapsed().as_millis()).unwrap_or(u64::MAX))
            }
        }
    }

    /// A fresh stamp. Ids are unique either way: a virtual clock still takes real entropy.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        let entropy = getrandom::u64().unwrap_or_else(|_| self.now().0.rotate_left(32));
        Stamp::new(self.now(), entropy)
    }
}
