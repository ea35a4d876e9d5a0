//! The resource bounds of one session's commands, and the message about an exceeded one. Pure but for the machine's size.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;

/// The memory bound where the machine's memory size is unknown.
const LEAST_MEMORY: u64 = 1 << 30;

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
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            processes: 1_024,
            memory: half_of_the_machine(),
            file: 16 << 30,
            new_files: 250_000,
        }
    }
}

/// Half of the machine's memory.
#[must_use]
pub fn half_of_the_machine() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    total(&text).map_or(LEAST_MEMORY, |bytes| bytes / 2)
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1_024)
}

/// The exceeded resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Processes and threads.
    Processes,
    /// Memory.
    Memory,
    /// The size of a file.
    FileSize,
    /// New files.
    NewFiles,
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
    /// A short name, for a record.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self.bound {
            Bound::Processes => "too many processes",
            Bound::Memory => "too much memory",
            Bound::FileSize => "a file too large",
            Bound::NewFiles => "too many new files",
        }
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit;
        match self.bound {
            Bound::Processes => write!(f, "more than {limit} concurrent processes and threads"),
            Bound::Memory => write!(f, "more than {limit} bytes of memory"),
            Bound::FileSize => write!(f, "a file of more than {limit} bytes"),
            Bound::NewFiles => write!(f, "more than {limit} new files"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_tells_its_memory() {
        let text = "MemTotal:       24684084 kB\nMemFree:        23331616 kB\n";
        assert_eq!(total(text), Some(24_684_084 * 1_024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert_eq!(total("MemTotal: many kB\n"), None);
    }

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
