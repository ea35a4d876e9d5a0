//! The resource bounds of one session's commands, and the message about an exceeded one. Pure but for the machine's size.

use crate::machine::half_of_the_machine;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The resources that the commands of one session may use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Processes and threads at the same time.
    pub processes: u64,
    /// Bytes of memory, summed over all processes.
    pub memory: u64,
    /// Bytes per file that they write.
    pub file: u64,
    /// Files that they create in one go: while at least one command, or what one left behind, runs.
    pub new_files: u64,
    /// Bytes on disks that the files take which they make or change, from the session's first command on. 0: half of what
    /// is free then.
    pub new_bytes: u64,
    /// Bytes on a disk that stay free: below this, a session is ended that took a part of it. A small disk keeps less.
    pub free: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            processes: 1_024,
            memory: half_of_the_machine(),
            file: 16 << 30,
            new_files: 250_000,
            new_bytes: 0,
            free: 1 << 30,
        }
    }
}

/// The exceeded resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Processes and threads.
    Processes,
    /// Memory.
    Memory,
    /// A session's share of the memory, while little is left.
    MemoryShare,
    /// The size of a file.
    FileSize,
    /// New files.
    NewFiles,
    /// Bytes of new and changed files.
    NewBytes,
    /// The free space of a disk.
    FreeSpace,
    /// The lease of the node in its fleet: its commands end before others may take over its sessions.
    Lease,
}

/// An exceeded bound; the processes that exceeded it were killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exceeded {
    /// The resource.
    pub bound: Bound,
    /// The limit.
    pub limit: u64,
    /// An earlier command's leftovers exceeded it, not this command.
    pub earlier: bool,
}

impl Exceeded {
    /// The lease of the node has ended.
    pub(crate) const LEASE: Self = Self {
        bound: Bound::Lease,
        limit: 0,
        earlier: false,
    };

    /// A short name, for a record.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self.bound {
            Bound::Processes => "too many processes",
            Bound::Memory | Bound::MemoryShare => "too much memory",
            Bound::FileSize => "a file too large",
            Bound::NewFiles => "too many new files",
            Bound::NewBytes | Bound::FreeSpace => "too much disk space",
            Bound::Lease => "the lease of the node has ended",
        }
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit;
        match self.bound {
            Bound::Processes => write!(f, "more than {limit} concurrent processes and threads"),
            Bound::Memory => write!(f, "more than {limit} bytes of memory"),
            Bound::MemoryShare => write!(
                f,
                "more than {limit} bytes of memory, its share while the machine has little left"
            ),
            Bound::FileSize => write!(f, "a file of more than {limit} bytes"),
            Bound::NewFiles => write!(f, "more than {limit} new files"),
            Bound::NewBytes => write!(f, "more than {limit} bytes of new and changed files"),
            Bound::FreeSpace => write!(f, "disk space until less than {limit} bytes were free"),
            Bound::Lease => f.write_str("more time than the lease of the node had left"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_exceeded_is_said_with_the_limit() {
        let exceeded = Exceeded {
            bound: Bound::NewFiles,
            limit: 7,
            earlier: false,
        };
        assert_eq!(exceeded.to_string(), "more than 7 new files");
    }
}
