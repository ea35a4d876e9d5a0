//! What processes wrote to disks, by the kernel's account of each.

use crate::processes::Process;
use std::collections::BTreeMap;
use std::fs;

/// The sum over the processes that the checks saw. It misses the writes between the last check of a process and its end.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// By pid and start time.
    each: BTreeMap<(i32, u64), u64>,
    all: u64,
    before: u64,
}

impl Written {
    pub(super) const fn begin(&mut self) {
        self.before = self.all;
    }

    /// Bytes since the session's first command.
    pub(super) const fn all(&self) -> u64 {
        self.all
    }

    /// Bytes since the commands that run began.
    pub(super) const fn in_this_run(&self) -> u64 {
        self.all.saturating_sub(self.before)
    }

    pub(super) fn read<'a>(&mut self, living: impl Iterator<Item = &'a Process>) {
        self.add(living.filter_map(|process| {
            // A process that has exited has nothing to read.
            let text = fs::read_to_string(format!("/proc/{}/io", process.pid)).ok()?;
            Some(((process.pid, process.started), bytes(&text)?))
        }));
    }

    fn add(&mut self, read: impl Iterator<Item = ((i32, u64), u64)>) {
        let mut each = BTreeMap::new();
        for (process, bytes) in read {
            let before = self.each.get(&process).copied().unwrap_or(0);
            self.all = self.all.saturating_add(bytes.saturating_sub(before));
            each.insert(process, bytes);
        }
        self.each = each;
    }
}

fn bytes(io: &str) -> Option<u64> {
    let mut lines = io.lines();
    lines
        .find_map(|line| line.strip_prefix("write_bytes: "))?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_wrote_counts_once_and_stays_after_its_end() {
        let mut written = Written::default();
        written.add([((4, 1), 10), ((5, 1), 1)].into_iter());
        written.add([((4, 1), 15)].into_iter());
        assert_eq!(written.all(), 16);
        written.begin();
        written.add([((4, 2), 3)].into_iter());
        assert_eq!((written.all(), written.in_this_run()), (19, 3), "another process");
    }

    #[test]
    fn the_kernels_account_is_read() {
        assert_eq!(
            bytes("wchar: 9\nread_bytes: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 5\n"),
            Some(4_096)
        );
        assert_eq!(bytes("rchar: 1\n"), None);
    }
}
