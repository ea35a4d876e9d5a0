//! When which cold session goes on by itself. Pure; bounded by the sessions that have a time.

use agentd_protocol::{SessionId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Timed wake-ups, one per session.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    times: BTreeMap<SessionId, Timestamp>,
    order: BTreeSet<(Timestamp, SessionId)>,
}

impl Wakes {
    /// Sets the time of a session, instead of an earlier one.
    pub(crate) fn set(&mut self, session: SessionId, at: Timestamp) {
        self.remove(session);
        self.times.insert(session, at);
        self.order.insert((at, session));
    }

    /// The session is awake, or gone.
    pub(crate) fn remove(&mut self, session: SessionId) {
        if let Some(at) = self.times.remove(&session) {
            self.order.remove(&(at, session));
        }
    }

    /// Takes a session whose time has come.
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<SessionId> {
        let (at, session) = *self.order.first()?;
        if at > now {
            return None;
        }
        self.remove(session);
        Some(session)
    }

    /// The next time.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.order.first().map(|(at, _)| *at)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// Forgets all.
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
