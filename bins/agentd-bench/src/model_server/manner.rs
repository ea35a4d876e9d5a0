//! The server's behavior for all conversations, whatever their plans: its speed, and how often it fails.

use std::sync::atomic::{AtomicU64, Ordering};

/// Latency, pieces and failures.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Manner {
    /// Milliseconds before the first byte of an answer.
    pub first_ms: u64,
    /// Milliseconds between two pieces.
    pub gap_ms: u64,
    /// Number of pieces per answer; 0: one per event, or a single one without `gap_ms`.
    pub pieces: usize,
    /// How often requests fail.
    pub rates: Rates,
    /// The seed that selects the failing requests.
    pub seed: u64,
}

/// Shares of requests, from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Answered with 429.
    pub limited: f64,
    /// Answered with 529.
    pub overloaded: f64,
    /// Answered with 500.
    pub broken: f64,
    /// The stream breaks off in the middle.
    pub cut: f64,
}

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// An error status.
    Status(u16),
    /// Half of an answer.
    Cut,
}

/// Selects the failures of successive requests by the seed.
#[derive(Debug, Default)]
pub(super) struct Fate {
    asked: AtomicU64,
}

impl Fate {
    /// How the next request fails, if it does.
    pub(super) fn next(&self, manner: &Manner) -> Option<Trouble> {
        let rates = manner.rates;
        if rates == Rates::default() {
            return None;
        }
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut drawn = fraction(manner.seed, number);
        let choices = [
            (rates.limited, Trouble::Status(429)),
            (rates.overloaded, Trouble::Status(529)),
            (rates.broken, Trouble::Status(500)),
            (rates.cut, Trouble::Cut),
        ];
        for (share, trouble) in choices {
            if drawn < share {
                return Some(trouble);
            }
            drawn -= share;
        }
        None
    }
}

/// The random number at index `number` of a seed, from 0 to 1 (splitmix64).
#[must_use]
pub fn fraction(seed: u64, number: u64) -> f64 {
    let mut mixed = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let high = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(u32::MAX);
    f64::from(high) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_reproduces_its_failures_at_the_requested_rate() {
        let manner = Manner {
            rates: Rates {
                limited: 0.2,
                cut: 0.1,
                ..Rates::default()
            },
            seed: 7,
            ..Manner::default()
        };
        let draw = || {
            let fate = Fate::default();
            (0..1_000).map(|_| fate.next(&manner)).collect::<Vec<_>>()
        };
        let first = draw();
        assert_eq!(first, draw());
        let count = |wanted| first.iter().filter(|got| **got == Some(wanted)).count();
        assert!((150..250).contains(&count(Trouble::Status(429))));
        assert!((60..140).contains(&count(Trouble::Cut)));
        assert_eq!(count(Trouble::Status(529)), 0);
    }
}
