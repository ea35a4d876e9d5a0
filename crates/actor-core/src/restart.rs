//! Limits how often something may fail before it is no longer restarted.

use agentd_protocol::Timestamp;
use std::collections::VecDeque;

/// Counts failures in a sliding window.
#[derive(Debug, Clone)]
pub struct RestartWindow {
    limit: usize,
    window_ms: u64,
    failures: VecDeque<Timestamp>,
}

impl RestartWindow {
    /// Tolerates at most `limit` failures within `window_ms` milliseconds.
    #[must_use]
    pub const fn new(limit: usize, window_ms: u64) -> Self {
        Self {
            limit,
            window_ms,
            failures: VecDeque::new(),
        }
    }

    /// Records a failure; true while a restart is still allowed.
    pub fn allow(&mut self, now: Timestamp) -> bool {
        while self
            .failures
            .front()
            .is_some_and(|at| now.since_ms(*at) > self.window_ms)
        {
            self.failures.pop_front();
        }
        self.failures.push_back(now);
        self.failures.len() <= self.limit
    }

    /// Forgets all failures: a person asked to continue.
    pub fn reset(&mut self) {
        self.failures.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_failure_in_the_window_is_one_too_many() {
        let mut window = RestartWindow::new(2, 1_000);
        assert!(window.allow(Timestamp(0)));
        assert!(window.allow(Timestamp(500)));
        assert!(!window.allow(Timestamp(1_000)));
        assert!(window.allow(Timestamp(5_000)));
    }
}
