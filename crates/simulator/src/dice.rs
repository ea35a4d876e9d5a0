//! The only source of randomness.

use agentd_protocol::{Stamp, Timestamp};

/// A stream of numbers determined by a seed.
#[derive(Debug, Clone)]
pub(crate) struct Dice(Stamp);

impl Dice {
    /// The stream of a seed; different `stream` values give independent streams.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = Stamp::new(Timestamp(0), seed);
        let state = mixed.next_u64() ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(Stamp::new(Timestamp(0), state))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n`; 0 for 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next().checked_rem(n).unwrap_or(0)
    }

    /// A number from `least` to `most`, inclusive.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True with this probability, in percent.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }

    /// A random element; `None` if there are none.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.below(of.len() as u64);
        of.get(usize::try_from(at).unwrap_or(0))
    }

    /// The time and the entropy of one decision.
    pub(crate) fn stamp(&mut self, now: Timestamp) -> Stamp {
        Stamp::new(now, self.next())
    }
}
