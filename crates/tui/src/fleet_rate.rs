//! Rates as means over the last seconds.

use agentd_protocol::Timestamp;
use std::collections::VecDeque;

/// Rates are means over this time.
const SPAN_MS: u64 = 15_000;

/// A number that grows, as it was seen lately.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rate(VecDeque<(Timestamp, u64)>);

impl Rate {
    /// Takes in its value now.
    pub(crate) fn push(&mut self, now: Timestamp, value: u64) {
        self.0.push_back((now, value));
        while self.0.len() > 2 && self.0.get(1).is_some_and(|(at, _)| now.since_ms(*at) > SPAN_MS) {
            self.0.pop_front();
        }
    }

    /// How much it grew, and in how many milliseconds.
    fn growth(&self) -> Option<(u64, u64)> {
        let ((from, before), (to, now)) = (self.0.front()?, self.0.back()?);
        Some((now.saturating_sub(*before), to.since_ms(*from)))
    }

    /// Its growth per minute.
    pub(crate) fn a_minute(&self) -> Option<u64> {
        let (more, span_ms) = self.growth()?;
        (more * 60_000).checked_div(span_ms)
    }

    /// Its growth per second.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn a_second(&self) -> f64 {
        let (more, span_ms) = self.growth().unwrap_or_default();
        if span_ms == 0 {
            return 0.0;
        }
        more as f64 * 1_000.0 / span_ms as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_mean_over_the_last_seconds() {
        let mut rate = Rate::default();
        assert_eq!((rate.a_minute(), rate.a_second()), (None, 0.0));
        for second in 0..60 {
            rate.push(
                Timestamp(second * 1_000),
                if second < 30 { 0 } else { (second - 29) * 10 },
            );
        }
        assert_eq!((rate.a_minute(), rate.a_second()), (Some(600), 10.0));
        // A total that shrinks (a session was deleted) is no growth.
        rate.push(Timestamp(60_000), 0);
        assert_eq!(rate.a_minute(), Some(0));
    }
}
