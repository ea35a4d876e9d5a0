//! Counts the crashes of each loop. Pure.

use agentd_actor_kit::RestartWindow;
use agentd_protocol::{SessionId, Timestamp};
use std::collections::BTreeMap;

/// Crashes within the window that are tolerated; one more faults the session.
const FORGIVEN: usize = 2;
/// The length of the window in milliseconds.
const WINDOW_MS: u64 = 300_000;
/// The number of sessions from which old entries are swept out.
const SWEEP_AT: usize = 1_024;

/// Recent crashes by session; old entries are swept out.
#[derive(Debug, Default)]
pub(crate) struct Crashes {
    windows: BTreeMap<SessionId, (RestartWindow, Timestamp)>,
    total: u64,
}

impl Crashes {
    /// Records a crash; false when it was one too many.
    pub(crate) fn forgive(&mut self, session: SessionId, now: Timestamp) -> bool {
        self.total = self.total.saturating_add(1);
        if self.windows.len() >= SWEEP_AT {
            self.windows
                .retain(|_, (_, last)| now.since_ms(*last) <= WINDOW_MS);
        }
        let fresh = || (RestartWindow::new(FORGIVEN, WINDOW_MS), now);
        let (window, last) = self.windows.entry(session).or_insert_with(fresh);
        *last = now;
        window.allow(now)
    }

    /// Forgets a session's crashes because a person revived it.
    pub(crate) fn forget(&mut self, session: SessionId) {
        self.windows.remove(&session);
    }

    /// The number of crashes since the start.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_crash_in_five_minutes_faults_until_a_person_speaks() {
        let mut crashes = Crashes::default();
        let forgiven: Vec<bool> = [0, 1_000, 299_000]
            .map(|at| crashes.forgive(SessionId::NIL, Timestamp(at)))
            .to_vec();
        assert_eq!(forgiven, [true, true, false]);
        crashes.forget(SessionId::NIL);
        assert!(crashes.forgive(SessionId::NIL, Timestamp(299_001)));
        assert_eq!(crashes.total(), 4);
    }

    #[test]
    fn old_crashes_do_not_count() {
        let mut crashes = Crashes::default();
        let forgiven =
            [0, 400_000, 800_000, 1_200_000].map(|at| crashes.forgive(SessionId::NIL, Timestamp(at)));
        assert_eq!(forgiven, [true; 4]);
    }
}
