//! The recent rate of admissions. Pure.

use agentd_protocol::Timestamp;
use std::collections::VecDeque;

/// The number of admissions remembered.
const RECENT: usize = 64;
/// Older admissions say nothing about the current rate.
const FRESH_MS: u64 = 10 * 60 * 1_000;

/// The times of the last admissions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace(VecDeque<Timestamp>);

impl Pace {
    pub(crate) fn granted(&mut self, now: Timestamp) {
        if self.0.len() >= RECENT {
            self.0.pop_front();
        }
        self.0.push_back(now);
    }

    /// The approximate time until this many more are admitted, at the current rate.
    pub(crate) fn eta_ms(&self, more: usize, now: Timestamp) -> Option<u64> {
        let (first, count) = self.fresh(now)?;
        let span = u128::from(now.since_ms(first));
        u64::try_from(span * more as u128 / count as u128).ok()
    }

    /// The average interval between admissions, without the time since the last one.
    pub(crate) fn step_ms(&self, now: Timestamp) -> Option<u64> {
        let (first, count) = self.fresh(now)?;
        let span = self.0.back()?.since_ms(first);
        Some(span / u64::try_from(count - 1).ok()?)
    }

    /// The first recent admission, and their number, which is at least two.
    fn fresh(&self, now: Timestamp) -> Option<(Timestamp, usize)> {
        let fresh = self.0.partition_point(|at| now.since_ms(*at) > FRESH_MS);
        let count = self.0.len().saturating_sub(fresh);
        (count >= 2).then_some((*self.0.get(fresh)?, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_follows_the_last_admissions() {
        let mut pace = Pace::default();
        assert_eq!(pace.eta_ms(5, Timestamp(0)), None);
        for second in 1..=200 {
            pace.granted(Timestamp(second * 1_000));
        }
        assert_eq!(pace.eta_ms(64, Timestamp(200_000)), Some(63_000));
        assert_eq!(
            pace.eta_ms(2, Timestamp(264_000 + 137_000)),
            Some(8_250),
            "a halt makes it longer"
        );
        assert_eq!(
            pace.step_ms(Timestamp(264_000 + 137_000)),
            Some(1_000),
            "but not the distance between two"
        );
        assert_eq!(
            pace.eta_ms(2, Timestamp(900_000)),
            None,
            "old measurements do not count"
        );
    }
}
