//! Wake times of cold sessions. Pure; bounded by the number of sessions with a wake time.

use agentd_protocol::{SessionId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Timed wake-ups, one per session.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    times: BTreeMap<SessionId, Timestamp>,
    order: BTreeSet<(Timestamp, SessionId)>,
}

impl Wakes {
    /// Sets a session's wake time, replacing an earlier one.
    pub(crate) fn set(&mut self, session: SessionId, at: Timestamp) {
        self.remove(session);
        self.times.insert(session, at);
        self.order.insert((at, session));
    }

    /// Whether a session has a wake time.
    pub(crate) fn has(&self, session: SessionId) -> bool {
        self.times.contains_key(&session)
    }

    /// Removes a session that is awake or gone.
    pub(crate) fn remove(&mut self, session: SessionId) {
        if let Some(at) = self.times.remove(&session) {
            self.order.remove(&(at, session));
        }
    }

    /// Removes and returns a session that is due.
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<SessionId> {
        let (at, session) = *self.order.first()?;
        if at > now {
            return None;
        }
        self.remove(session);
        Some(session)
    }

    /// The next wake time.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.order.first().map(|(at, _)| *at)
    }

    /// The number of pending wake-ups.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// Removes all wake-ups.
    pub(crate) fn clear(&mut self) {
        self.times.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(n: u8) -> SessionId {
        SessionId::from_parts(u64::from(n), [n; 10])
    }

    #[test]
    fn sessions_wake_in_the_order_of_their_last_times() {
        let mut wakes = Wakes::default();
        wakes.set(session(1), Timestamp(30));
        wakes.set(session(2), Timestamp(20));
        wakes.set(session(1), Timestamp(10));
        assert_eq!(wakes.next(), Some(Timestamp(10)));
        assert_eq!(wakes.pop_due(Timestamp(9)), None);
        assert_eq!(wakes.pop_due(Timestamp(20)), Some(session(1)));
        assert_eq!(wakes.pop_due(Timestamp(20)), Some(session(2)));
        assert_eq!((wakes.pop_due(Timestamp(99)), wakes.len()), (None, 0));
    }
}
