//! The requests that were accepted lately, so that none is accepted twice. Pure and bounded.

use std::collections::{BTreeSet, HashSet};

/// The number of a request, which its sender chose at random.
pub(crate) type Nonce = [u8; 16];

/// The kinds of numbers that arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    /// New.
    New,
    /// It was accepted before.
    Again,
    /// There is no room to remember it.
    Full,
}

/// The numbers that could still be repeated.
#[derive(Debug, Default)]
pub(crate) struct Nonces {
    known: HashSet<Nonce>,
    /// Until when each could be repeated, in milliseconds.
    ends: BTreeSet<(u64, Nonce)>,
}

impl Nonces {
    /// Remembers a number until the end of `until`. A number that does not fit must be refused (I7).
    pub(crate) fn note(&mut self, nonce: Nonce, until: u64, now: u64, most: usize) -> Noted {
        while let Some(oldest) = self.ends.first().copied().filter(|(end, _)| *end < now) {
            self.ends.remove(&oldest);
            self.known.remove(&oldest.1);
        }
        if self.known.contains(&nonce) {
            return Noted::Again;
        }
        if self.known.len() >= most {
            return Noted::Full;
        }
        self.known.insert(nonce);
        self.ends.insert((until, nonce));
        Noted::New
    }
}
