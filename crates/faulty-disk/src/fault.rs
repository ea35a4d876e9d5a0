//! The faults of a disk.

use std::time::Duration;

/// A fault of a disk in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// No fault.
    #[default]
    None,
    /// The disk is full for a number of writes; then there is space again.
    Full {
        /// The number of writes that still succeed.
        after: u64,
        /// The number of writes that then fail.
        times: u64,
    },
    /// One sync fails. Its pending changes are lost, and later syncs succeed.
    SyncFails {
        /// The number of syncs that succeed before.
        after: u64,
    },
    /// Every change is refused, as after a read-only remount by the kernel.
    ReadOnly,
    /// All operations are delayed.
    Slow {
        /// The delay of each write.
        write: Duration,
        /// The delay of each sync.
        sync: Duration,
    },
}

/// The effect of a fault on one write or one sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blow {
    None,
    NoSpace,
    Failed,
    ReadOnly,
    Late(Duration),
}

impl Fault {
    /// The effect on a write, or on another change that needs space.
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

    /// The effect on a change that needs no space.
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
