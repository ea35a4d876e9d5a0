//! The only source of chance.

use agentd_protocol::{Stamp, Timestamp};

/// A stream of numbers that a seed determines.
#[derive(Debug, Clone)]
pub(crate) struct Dice(Stamp);

impl Dice {
    /// The stream of a seed; another `stream` of the same seed has nothing to do with it.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = Stamp::new(Timestamp(0), seed);
        let state = mixed.next_u64() ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(Stamp::new(Timestamp(0), state))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Below `n`; 0 for 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next().checked_rem(n).unwrap_or(0)
    }

    /// From `least` to `most`, the ends included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// So often of a hundred.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }

    /// One of these; they are not empty.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.below(of.len() as u64);
        of.get(usize::try_from(at).unwrap_or(0))
    }

    /// The moment and the entropy of one decision.
    pub(crate) fn stamp(&mut self, now: Timestamp) -> Stamp {
        Stamp::new(now, self.next())
    }
}
