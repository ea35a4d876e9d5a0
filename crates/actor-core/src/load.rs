//! How much an actor has to do.

/// Work of an actor beside its mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// In progress.
    pub running: u64,
    /// Waiting for a turn.
    pub waiting: u64,
}
