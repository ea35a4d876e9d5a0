//! Who may call next: pure bookkeeping of one provider.

use agentd_actor_kit::{CallOutcome, ProviderStatus};
use agentd_protocol::{FailureClass, SessionId, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// More waiters than this are turned away.
const MAX_WAITING: usize = 65_536;
/// A longer wish of a server is tried again after this all the same.
const LONGEST_PAUSE_MS: u64 = 15 * 60 * 1_000;

/// A pause that has to be ended by a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) generation: u64,
    pub(crate) after_ms: u64,
}

/// The permits of one provider, and who waits for them. `T` is where a permit is delivered.
#[derive(Debug)]
pub(crate) struct Admission<T> {
    permits: u32,
    running: u32,
    waiting: usize,
    /// The sessions that wait, in the order in which they are served.
    turns: VecDeque<SessionId>,
    waiters: BTreeMap<SessionId, VecDeque<T>>,
    paused_until: Option<Timestamp>,
    generation: u64,
}

impl<T> Admission<T> {
    pub(crate) fn new(permits: u32) -> Self {
        Self {
            permits: permits.max(1),
            running: 0,
            waiting: 0,
            turns: VecDeque::new(),
            waiters: BTreeMap::new(),
            paused_until: None,
            generation: 0,
        }
    }

    /// Lines somebody up; gives the place back when the queue is full.
    pub(crate) fn line_up(&mut self, session: SessionId, place: T) -> Result<(), T> {
        if self.waiting >= MAX_WAITING {
            return Err(place);
        }
        let own = self.waiters.entry(session).or_default();
        if own.is_empty() {
            self.turns.push_back(session);
        }
        own.push_back(place);
        self.waiting += 1;
        Ok(())
    }

    /// Takes the next who may call now: sessions in turn, each in its own order.
    pub(crate) fn admit(&mut self) -> Option<(SessionId, T)> {
        if self.paused_until.is_some() || self.running >= self.permits {
            return None;
        }
        let session = self.turns.pop_front()?;
        let own = self.waiters.get_mut(&session)?;
        let place = own.pop_front()?;
        if own.is_empty() {
            self.waiters.remove(&session);
        } else {
            self.turns.push_back(session);
        }
        self.waiting = self.waiting.saturating_sub(1);
        self.running = self.running.saturating_add(1);
        Some((session, place))
    }

    /// A permit came back. A server that asked for a wait pauses everybody; a longer pause that runs already stays.
    pub(crate) fn release(&mut self, outcome: CallOutcome, now: Timestamp) -> Option<Pause> {
        self.running = self.running.saturating_sub(1);
        let CallOutcome::Failed {
            class,
            retry_after_ms: Some(wish),
        } = outcome
        else {
            return None;
        };
        if !matches!(class, FailureClass::RateLimited | FailureClass::Overloaded) || wish == 0 {
            return None;
        }
        let after_ms = wish.min(LONGEST_PAUSE_MS);
        let until = now.plus_ms(after_ms);
        if self.paused_until.is_some_and(|already| already >= until) {
            return None;
        }
        self.paused_until = Some(until);
        self.generation = self.generation.saturating_add(1);
        Some(Pause {
            generation: self.generation,
            after_ms,
        })
    }

    /// The timer of a pause fired; that of an older pause changes nothing.
    pub(crate) fn unpause(&mut self, generation: u64) {
        if generation == self.generation {
            self.paused_until = None;
        }
    }

    pub(crate) fn status(&self) -> ProviderStatus {
        ProviderStatus {
            running: self.running,
            waiting: u32::try_from(self.waiting).unwrap_or(u32::MAX),
            permits: self.permits,
            paused_until: self.paused_until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(n: u8) -> SessionId {
        SessionId::from_bytes([n; 16])
    }

    fn failed(class: FailureClass, retry_after_ms: Option<u64>) -> CallOutcome {
        CallOutcome::Failed {
            class,
            retry_after_ms,
        }
    }

    fn admission(permits: u32, lined_up: &[(u8, u32)]) -> Admission<u32> {
        let mut admission = Admission::new(permits);
        for (n, place) in lined_up {
            assert_eq!(admission.line_up(session(*n), *place), Ok(()));
        }
        admission
    }

    #[test]
    fn i6_sessions_are_served_in_turn() {
        let mut admission = admission(10, &[(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (3, 31)]);
        let order: Vec<u32> = std::iter::from_fn(|| admission.admit().map(|(_, place)| place)).collect();
        assert_eq!(order, [10, 20, 30, 11, 31, 12]);
    }

    #[test]
    fn no_more_run_than_there_are_permits() {
        let mut admission = admission(2, &[(1, 1), (2, 2), (3, 3)]);
        assert!(admission.admit().is_some() && admission.admit().is_some());
        assert_eq!(admission.admit(), None);
        assert_eq!(admission.release(CallOutcome::Dropped, Timestamp(0)), None);
        assert_eq!(admission.admit(), Some((session(3), 3)));
        let status = ProviderStatus {
            running: 2,
            waiting: 0,
            permits: 2,
            paused_until: None,
        };
        assert_eq!(admission.status(), status);
    }

    #[test]
    fn a_servers_wish_pauses_everybody_and_only_its_own_timer_ends_it() {
        let mut admission = admission(4, &[(1, 1), (2, 2), (3, 3)]);
        assert!(admission.admit().is_some() && admission.admit().is_some());
        let now = Timestamp(1_000);
        let first = admission.release(failed(FailureClass::RateLimited, Some(5_000)), now);
        assert_eq!(
            first,
            Some(Pause {
                generation: 1,
                after_ms: 5_000
            })
        );
        assert_eq!(admission.admit(), None);
        assert_eq!(admission.status().paused_until, Some(Timestamp(6_000)));
        let longer = admission.release(failed(FailureClass::Overloaded, Some(9_000)), now);
        assert_eq!(
            longer,
            Some(Pause {
                generation: 2,
                after_ms: 9_000
            })
        );
        admission.unpause(1);
        assert_eq!(admission.admit(), None, "the older timer fired too early");
        admission.unpause(2);
        assert_eq!(admission.admit(), Some((session(3), 3)));
    }

    #[test]
    fn failures_without_a_wish_and_shorter_wishes_change_nothing() {
        let mut admission = admission(1, &[]);
        let now = Timestamp(0);
        assert_eq!(
            admission.release(failed(FailureClass::RateLimited, None), now),
            None
        );
        assert_eq!(
            admission.release(failed(FailureClass::InvalidRequest, Some(5)), now),
            None
        );
        assert!(
            admission
                .release(failed(FailureClass::RateLimited, Some(u64::MAX)), now)
                .is_some()
        );
        assert_eq!(admission.status().paused_until, Some(Timestamp(LONGEST_PAUSE_MS)));
        assert_eq!(
            admission.release(failed(FailureClass::RateLimited, Some(5)), now),
            None
        );
    }

    #[test]
    fn the_queue_has_an_end() {
        let mut admission = Admission::new(1);
        for place in 0..MAX_WAITING {
            assert_eq!(admission.line_up(session(1), place), Ok(()));
        }
        assert_eq!(admission.line_up(session(2), 7), Err(7));
    }
}
