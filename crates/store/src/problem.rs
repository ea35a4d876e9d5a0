//! The words for what a check of a store finds.

/// The maximum number of problems listed.
pub const MOST: usize = 100;

/// A session whose events do not end at its head.
#[must_use]
pub fn gap(uid: &str, head: i64, events: i64, newest: i64) -> String {
    format!("session {uid}: head {head}, but {events} events up to {newest}")
}

/// A line that differs from what was written.
#[must_use]
pub fn line(uid: &str, seq: i64) -> String {
    format!("session {uid}: the bytes of event {seq} do not match what was written")
}

/// A list row that differs from what its owner wrote, or that this build cannot read.
#[must_use]
pub fn row(uid: &str) -> String {
    format!("session {uid}: its list row is damaged; loading the session rebuilds it")
}

/// Idempotency keys whose stored answer is unusable.
#[must_use]
pub fn keys(count: i64) -> String {
    format!("{count} idempotency keys have unreadable answers")
}

/// A blob whose content does not match its name.
#[must_use]
pub fn blob(name: &str) -> String {
    format!("blob {name}: its content does not match what was written")
}
