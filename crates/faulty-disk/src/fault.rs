//! What goes wrong.

use std::time::Duration;

/// A fault of a disk in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// No space, from the write after so many more on, for so many attempts; then there is space again.
    Full {
        /// How many writes still succeed.
        after: u64,
        /// How many fail then.
        times: u64,
    },
    /// The sync after so many more fails once. What waited for it is lost, and later syncs are well.
    SyncFails {
        /// How many syncs still succeed.
        after: u64,
    },
    /// Every change is refused, as after the kernel remounted it.
    ReadOnly,
    /// Everything takes longer.
    Slow {
        /// Each write.
        write: Duration,
        /// Each sync.
        sync: Duration,
    },
}

/// What a fault does to one write or one sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blow {
    None,
    NoSpace,
    Failed,
    ReadOnly,
    Late(Duration),
}

impl Fault {
    /// A write, or another change that needs space.
    pub(crate) fn on_write(&mut self) -> Blow {
        match self {
            Self::Full { after, times } => match (*after, *times) {
                (0, 0) => Blow::None,
                (0, left) => {
                    *times = left - 1;
                    Blow::NoSpace
                }
                (left, _) => {
                    *after = left - 1;
                    Blow::None
                }
            },
            Self::ReadOnly => Blow::ReadOnly,
            Self::Slow { write, .. } => Blow::Late(*write),
            Self::None | Self::SyncFails { .. } => Blow::None,
        }
    }

    /// A change that needs no space.
    pub(crate) const fn on_removal(&self) -> Blow {
        match self {
            Self::ReadOnly => Blow::ReadOnly,
            _ => Blow::None,
        }
    }

    pub(crate) fn on_sync(&mut self) -> Blow {
        match self {
            Self::SyncFails { after: 0 } => {
                *self = Self::None;
                Blow::Failed
            }
            Self::SyncFails { after } => {
                *after -= 1;
                Blow::None
            }
            Self::Slow { sync, .. } => Blow::Late(*sync),
            Self::None | Self::Full { .. } | Self::ReadOnly => Blow::None,
        }
    }
}
