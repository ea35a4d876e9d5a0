//! Watches the commands' resource usage in the warden. The kernel enforces its own limits where available; this watch
//! reports which bound was exceeded, and is the only enforcement where the kernel limits nothing.

use crate::bounds::{Bound, Bounds, Exceeded};
use crate::new_files::NewFiles;
use crate::processes::{Process, Table, held};
use crate::shared_memory::{MemoryFiles, of_the_machine};
use rustix::param::page_size;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The minimum and maximum interval between checks.
const SOON: Duration = Duration::from_millis(100);
const LATE: Duration = Duration::from_secs(1);
/// Checks may take at most one part in this many of the time.
const SHARE: u32 = 100;

/// What to watch, and when to check next.
pub(crate) struct Watch {
    bounds: Bounds,
    page: u64,
    /// An in-memory place of the session's own.
    shared: Option<PathBuf>,
    files: NewFiles,
    due: Option<Instant>,
}

impl Watch {
    /// `places` are where commands write; `shared` is an in-memory file system that only they have.
    pub(crate) fn new(bounds: Bounds, places: Vec<PathBuf>, shared: Option<PathBuf>) -> Self {
        Self {
            bounds,
            page: page_size() as u64,
            shared,
            files: NewFiles::new(bounds.new_files, places),
            due: None,
        }
    }

    pub(crate) const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The time of the next check; `None` while nothing runs.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Starts watching when a command starts.
    pub(crate) fn wake(&mut self) {
        if self.due.is_none() {
            self.files.begin();
            self.due = Some(Instant::now() + SOON);
        }
    }

    /// Stops watching: nothing runs any more.
    pub(crate) fn rest(&mut self) {
        self.due = None;
    }

    /// Checks the running processes. Returns the exceeded resource, if any.
    pub(crate) fn look(&mut self, table: &Table, living: &BTreeSet<i32>, begun: Instant) -> Option<Exceeded> {
        let (bound, limit) = match self.processes(table, living) {
            Some(found) => found,
            None if self.files.exceeded() => (Bound::NewFiles, self.bounds.new_files),
            None => {
                let pause = (begun.elapsed() * SHARE).clamp(SOON, LATE);
                self.due = Some(Instant::now() + pause);
                return None;
            }
        };
        self.due = Some(Instant::now());
        Some(Exceeded {
            bound,
            limit,
            earlier: false,
        })
    }

    fn processes(&self, table: &Table, living: &BTreeSet<i32>) -> Option<(Bound, u64)> {
        let all = || living.iter().filter_map(|pid| table.get(pid));
        if all().map(|process| process.threads).sum::<u64>() > self.bounds.processes {
            return Some((Bound::Processes, self.bounds.processes));
        }
        let place = self.shared.as_deref().map_or(0, in_memory);
        let resident: u64 = all().map(|process| process.pages).sum::<u64>() * self.page;
        // Reading descriptors takes time, and most sessions use far too little to need it.
        let most = of_the_machine().unwrap_or(u64::MAX);
        if resident.saturating_add(place).saturating_add(most) <= self.bounds.memory {
            return None;
        }
        let files = MemoryFiles::open_in(living.iter().copied(), self.shared.is_none());
        let shared = place.saturating_add(files.bytes());
        if resident.saturating_add(shared) <= self.bounds.memory {
            return None;
        }
        // Memory that programs share was counted for each of them: measure more precisely.
        let own: u64 = all()
            .map(|process: &Process| {
                let (own, maps_shared) = held(process.pid);
                let mapped = maps_shared.then(|| files.other_mapped(process.pid, self.shared.is_some()));
                own.saturating_add(mapped.unwrap_or(0))
            })
            .sum();
        (own.saturating_add(shared) > self.bounds.memory).then_some((Bound::Memory, self.bounds.memory))
    }
}

fn in_memory(place: &std::path::Path) -> u64 {
    rustix::fs::statvfs(place).map_or(0, |found| {
        found
            .f_blocks
            .saturating_sub(found.f_bfree)
            .saturating_mul(found.f_frsize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(processes: u64) -> Watch {
        let bounds = Bounds {
            processes,
            ..Bounds::default()
        };
        Watch::new(bounds, Vec::new(), None)
    }

    fn crowd(threads: &[u64]) -> (Table, BTreeSet<i32>) {
        let table: Table = (1..)
            .zip(threads)
            .map(|(pid, threads)| {
                let process = Process {
                    pid,
                    threads: *threads,
                    ..Process::default()
                };
                (pid, process)
            })
            .collect();
        let living = table.keys().copied().collect();
        (table, living)
    }

    #[test]
    fn threads_count_and_the_limit_itself_is_allowed() {
        let (table, living) = crowd(&[1, 2, 3]);
        assert_eq!(watch(6).look(&table, &living, Instant::now()), None);
        let over = watch(5).look(&table, &living, Instant::now());
        assert_eq!(
            over,
            Some(Exceeded {
                bound: Bound::Processes,
                limit: 5,
                earlier: false
            })
        );
    }

    #[test]
    fn it_looks_only_while_something_runs() {
        let mut watch = watch(5);
        assert_eq!(watch.due(), None);
        watch.wake();
        assert!(watch.due().is_some());
        watch.rest();
        assert_eq!(watch.due(), None);
    }
}
