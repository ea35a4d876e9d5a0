//! The wall clock as a value, so that tests can set the time.

use agentd_protocol::Timestamp;
use std::fmt;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// A source of the current time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that calls this function.
    #[must_use]
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The system's clock.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the store reads the system's clock"
    )]
    pub fn system() -> Self {
        Self::new(|| {
            let ms = std::time::SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_millis();
            Timestamp(u64::try_from(ms).unwrap_or(u64::MAX))
        })
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
