//! Bugs that the simulator plants into the shipped code, to prove that its seeds find them. Only a debug build can hold
//! one; in a release build the checks compile to nothing.

use crate::machine::Machine;

/// A planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Effects do not wait for the commit of their intent.
    EarlyEffect,
    /// A child does not wait for it.
    EarlyChild,
    /// A command is answered before it is durable.
    EarlyAnswer,
    /// A commit drops the effects that waited for it.
    LostEffect,
    /// The end of a back-off is ignored.
    LostTimer,
    /// The failure of a model call, or the exit of its worker, is ignored.
    LostDown,
    /// A tool is started twice.
    DoubleStart,
    /// A list row does not say that its session continues by itself.
    Forgotten,
    /// After an append was lost, the loop continues.
    Deaf,
}

impl Machine {
    /// Plants a bug, if this is a debug build.
    #[must_use]
    pub fn planted(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant.filter(|_| cfg!(debug_assertions));
        self
    }

    pub(super) fn has(&self, mutant: Mutant) -> bool {
        cfg!(debug_assertions) && self.mutant == Some(mutant)
    }
}
