//! The wall clock, read only here.

use agentd_protocol::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// The current time.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this program that reads the system's clock"
)]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
