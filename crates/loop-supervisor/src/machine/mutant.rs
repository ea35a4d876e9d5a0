//! Bugs that the simulator plants into the shipped supervisor, to prove that its seeds find them. Only a debug build can hold
//! one; in a release build the checks compile to nothing.

use super::Supervisor;

/// A planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisorMutant {
    /// The exit of a loop is ignored.
    LostExit,
    /// A session that is loading is loaded again for its next command, and both loops stay.
    DoubleLoad,
    /// A session goes cold although a command is in its mailbox.
    LostCommand,
    /// After a loop went down, its row is read while its last append is still in flight (a bug that existed).
    EarlyLook,
    /// A session goes cold without its wake time.
    LostWake,
    /// The crashes of all sessions count as those of one.
    MiscountedCrash,
}

impl Supervisor {
    /// Plants a bug, if this is a debug build.
    #[must_use]
    pub fn planted(mut self, mutant: Option<SupervisorMutant>) -> Self {
        self.mutant = mutant.filter(|_| cfg!(debug_assertions));
        self
    }

    pub(super) fn has(&self, mutant: SupervisorMutant) -> bool {
        cfg!(debug_assertions) && self.mutant == Some(mutant)
    }
}
