//! Decides when a server that failed may be started again. Pure.

use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Failures older than this are forgotten.
const WINDOW: Duration = Duration::from_secs(300);
/// The wait after the second failure; doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait, except for the rest after too many failures.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// After this many failures within the window the server rests until the oldest one is forgotten.
const BUDGET: usize = 8;

/// The recent failures of a server.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failures: VecDeque<Instant>,
    last: Option<String>,
}

/// Why a server may not be started now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) failures: usize,
    pub(crate) after: Duration,
    pub(crate) why: String,
}

impl Health {
    /// Records a failed start or an unexpected end.
    pub(crate) fn failed(&mut self, why: String, now: Instant) {
        self.forget(now);
        self.failures.push_back(now);
        if self.failures.len() > BUDGET {
            self.failures.pop_front();
        }
        self.last = Some(why);
    }

    /// The last failure.
    pub(crate) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// Whether it may be started now: immediately after one failure, then after longer and longer waits.
    pub(crate) fn may_start(&mut self, now: Instant) -> Result<(), Rest> {
        self.forget(now);
        let failures = self.failures.len();
        let (Some(first), Some(last)) = (self.failures.front(), self.failures.back()) else {
            return Ok(());
        };
        let due = if failures >= BUDGET {
            *first + WINDOW
        } else if failures == 1 {
            *last
        } else {
            let doublings = u32::try_from(failures - 2).unwrap_or(u32::MAX).min(16);
            *last + (FIRST_WAIT * 2_u32.pow(doublings)).min(LONGEST_WAIT)
        };
        let after = due.saturating_duration_since(now);
        if after.is_zero() {
            return Ok(());
        }
        Err(Rest {
            failures,
            after,
            why: self.last.clone().unwrap_or_default(),
        })
    }

    fn forget(&mut self, now: Instant) {
        while self.failures.front().is_some_and(|at| *at + WINDOW <= now) {
            self.failures.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i6_a_server_that_fails_is_left_alone_for_longer_each_time() {
        let start = Instant::now();
        let mut health = Health::default();
        assert_eq!(health.may_start(start), Ok(()));
        let mut waits = Vec::new();
        let mut now = start;
        for _ in 0..BUDGET {
            health.failed("boom".to_owned(), now);
            let wait = health.may_start(now).err().map(|rest| rest.after);
            now += wait.unwrap_or_default();
            waits.push(wait.map_or(0, |wait| wait.as_secs()));
        }
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 300 - 63]);
        assert_eq!(health.may_start(now), Ok(()));
    }

    #[test]
    fn old_failures_are_forgotten() {
        let start = Instant::now();
        let mut health = Health::default();
        health.failed("a".to_owned(), start);
        health.failed("b".to_owned(), start);
        assert_eq!(
            health.may_start(start),
            Err(Rest {
                failures: 2,
                after: FIRST_WAIT,
                why: "b".to_owned()
            })
        );
        assert_eq!(health.may_start(start + WINDOW), Ok(()));
    }
}
