//! Watches the commands' resource usage in the warden. The kernel enforces its own limits where available; this watch
//! reports which bound was exceeded, and is the only enforcement where the kernel limits nothing.

use crate::bounds::{Bound, Bounds, Exceeded};
use crate::growth::Growth;
use crate::machine::share_of_memory;
use crate::processes::{Process, Table, held};
use crate::shared_memory::{MemoryFiles, of_the_machine};
use rustix::param::page_size;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The minimum and maximum interval between checks. It doubles while the usage does not grow, so that hundreds of commands
/// that wait for something cost little together.
const SOON: Duration = Duration::from_millis(100);
const LATE: Duration = Duration::from_secs(1);
/// Checks may take at most one part in this many of the time.
const SHARE: u32 = 100;

/// The processes to watch, and the time of the next check.
pub(crate) struct Watch {
    bounds: Bounds,
    page: u64,
    /// An in-memory place of the session's own.
    shared: Option<PathBuf>,
    growth: Growth,
    due: Option<Instant>,
    /// The interval before the last check, and what it found.
    pause: Duration,
    seen: Usage,
}

/// The resource use of the processes, as far as each check reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Usage {
    threads: u64,
    pages: u64,
}

impl Usage {
    /// Whether it is more than `before`; memory counts from an eighth more.
    const fn grew(self, before: Self) -> bool {
        self.threads > before.threads || self.pages > before.pages.saturating_add(before.pages / 8)
    }
}

impl Watch {
    /// `places` are where commands write; `shared` is an in-memory file system that only they have.
    pub(crate) fn new(bounds: Bounds, places: Vec<PathBuf>, shared: Option<PathBuf>) -> Self {
        Self {
            bounds,
            page: page_size() as u64,
            shared,
            growth: Growth::new(bounds, places),
            due: None,
            pause: SOON,
            seen: Usage::default(),
        }
    }

    pub(crate) const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The time of the next check; `None` while nothing runs.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Starts watching when a command starts, or watches closely again.
    pub(crate) fn wake(&mut self) {
        if self.due.is_none() {
            self.growth.begin();
        }
        let soon = Instant::now() + SOON;
        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
        self.pause = SOON;
    }

    /// Stops watching: nothing runs any more.
    pub(crate) fn rest(&mut self) {
        self.due = None;
    }

    /// Checks the running processes. Returns the exceeded resource, if any.
    pub(crate) fn look(&mut self, table: &Table, living: &BTreeSet<i32>, begun: Instant) -> Option<Exceeded> {
        let all = || living.iter().filter_map(|pid| table.get(pid));
        let usage = Usage {
            threads: all().map(|process| process.threads).sum(),
            pages: all().map(|process| process.pages).sum(),
        };
        let found = self.processes(usage, table, living);
        let Some((bound, limit)) = found.or_else(|| self.growth.exceeded(table, living)) else {
            let pause = self.next_pause(usage).max(begun.elapsed() * SHARE);
            self.due = Some(Instant::now() + pause.min(LATE));
            return None;
        };
        self.due = Some(Instant::now());
        Some(Exceeded {
            bound,
            limit,
            earlier: false,
        })
    }

    fn next_pause(&mut self, usage: Usage) -> Duration {
        self.pause = if usage.grew(self.seen) {
            SOON
        } else {
            (self.pause * 2).min(LATE)
        };
        self.seen = usage;
        self.pause
    }

    fn processes(&self, usage: Usage, table: &Table, living: &BTreeSet<i32>) -> Option<(Bound, u64)> {
        if usage.threads > self.bounds.processes {
            return Some((Bound::Processes, self.bounds.processes));
        }
        let (bound, limit) = self.memory_limit();
        let place = self.shared.as_deref().map_or(0, in_memory);
        let resident = usage.pages * self.page;
        // Reading descriptors takes time, and most sessions use far too little to need it.
        let most = of_the_machine().unwrap_or(u64::MAX);
        if resident.saturating_add(place).saturating_add(most) <= limit {
            return None;
        }
        let files = MemoryFiles::open_in(living.iter().copied(), self.shared.is_none());
        let shared = place.saturating_add(files.bytes());
        if resident.saturating_add(shared) <= limit {
            return None;
        }
        // Memory that programs share was counted for each of them: measure more precisely.
        let own: u64 = living
            .iter()
            .filter_map(|pid| table.get(pid))
            .map(|process: &Process| {
                let (own, maps_shared) = held(process.pid);
                let mapped = maps_shared.then(|| files.other_mapped(process.pid, self.shared.is_some()));
                own.saturating_add(mapped.unwrap_or(0))
            })
            .sum();
        (own.saturating_add(shared) > limit).then_some((bound, limit))
    }

    /// The session's own limit, or a smaller share while many sessions use much.
    fn memory_limit(&self) -> (Bound, u64) {
        let own = self.bounds.memory;
        match share_of_memory() {
            Some(share) if share < own => (Bound::MemoryShare, share),
            _ => (Bound::Memory, own),
        }
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
    fn commands_that_do_not_grow_are_checked_less_often() {
        let mut watch = watch(99);
        let usage = |threads, pages| Usage { threads, pages };
        assert_eq!(watch.next_pause(usage(2, 800)), SOON, "it has begun");
        let quiet: Vec<u128> = (0..5)
            .map(|_| watch.next_pause(usage(2, 900)).as_millis())
            .collect();
        assert_eq!(quiet, [200, 400, 800, 1_000, 1_000]);
        assert_eq!(watch.next_pause(usage(2, 1_012)), LATE, "less than an eighth");
        assert_eq!(watch.next_pause(usage(2, 1_139)), SOON);
        assert_eq!(watch.next_pause(usage(1, 1_139)), 2 * SOON);
        assert_eq!(watch.next_pause(usage(2, 1_139)), SOON);
    }

    #[test]
    fn another_command_is_watched_closely_from_its_start() {
        let mut watch = watch(99);
        watch.wake();
        for _ in 0..5 {
            watch.look(&Table::new(), &BTreeSet::new(), Instant::now());
        }
        assert!(watch.due() > Some(Instant::now() + 2 * SOON));
        watch.wake();
        assert!(watch.due() <= Some(Instant::now() + SOON));
        assert_eq!(watch.pause, SOON);
    }

    #[test]
    fn checks_run_only_while_a_command_runs() {
        let mut watch = watch(5);
        assert_eq!(watch.due(), None);
        watch.wake();
        assert!(watch.due().is_some());
        watch.rest();
        assert_eq!(watch.due(), None);
    }
}
