//! The schedule of passes. Pure: the caller supplies the time.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of waiting directories.
const MAX_WAITING: usize = 64;
/// Maximum number of directories whose last pass is remembered.
const MAX_KNOWN: usize = 1_024;

/// The result of a request for a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The index is fresh enough, or too many directories wait.
    Nothing,
    /// The directory was added to the queue.
    New,
    /// The directory is already in the queue, or its pass is running.
    Coming,
}

/// The order of passes: one at a time, first come, first served.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    waiting: VecDeque<PathBuf>,
    running: Option<PathBuf>,
    /// When the last pass of a directory ended, in milliseconds.
    ended: BTreeMap<PathBuf, u64>,
}

impl Schedule {
    /// Requests a pass. Queues the directory unless it is queued already, or its last pass is more recent than `fresh`.
    pub(crate) fn want(&mut self, workdir: &Path, now: u64, fresh: Duration) -> Wish {
        if self.runs(workdir) || self.waiting.iter().any(|one| one == workdir) {
            return Wish::Coming;
        }
        let fresh = u64::try_from(fresh.as_millis()).unwrap_or(u64::MAX);
        if let Some(ended) = self.ended.get(workdir)
            && now.saturating_sub(*ended) < fresh
        {
            return Wish::Nothing;
        }
        if self.waiting.len() >= MAX_WAITING {
            return Wish::Nothing;
        }
        self.waiting.push_back(workdir.to_owned());
        Wish::New
    }

    /// Whether the pass of a directory runs.
    pub(crate) fn runs(&self, workdir: &Path) -> bool {
        self.running.as_deref() == Some(workdir)
    }

    /// Takes the directory whose pass must start now.
    pub(crate) fn next(&mut self) -> Option<PathBuf> {
        if self.running.is_some() {
            return None;
        }
        self.running = self.waiting.pop_front();
        self.running.clone()
    }

    /// Records the end of the pass.
    pub(crate) fn ended(&mut self, now: u64) {
        let Some(workdir) = self.running.take() else {
            return;
        };
        self.ended.insert(workdir, now);
        while self.ended.len() > MAX_KNOWN {
            let oldest = self.ended.iter().min_by_key(|(_, at)| **at);
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else {
                break;
            };
            self.ended.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Duration = Duration::from_secs(10);

    #[test]
    fn passes_run_one_at_a_time_in_order() {
        let mut schedule = Schedule::default();
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        let wishes = [a, b, a].map(|dir| schedule.want(dir, 0, FRESH));
        assert_eq!(wishes, [Wish::New, Wish::New, Wish::Coming]);
        assert_eq!(schedule.next().as_deref(), Some(a));
        assert_eq!(schedule.next(), None);
        assert_eq!(schedule.want(a, 0, FRESH), Wish::Coming, "it is running");
        schedule.ended(5);
        assert_eq!(schedule.next().as_deref(), Some(b));
        schedule.ended(6);
        assert_eq!(schedule.next(), None);
    }

    #[test]
    fn a_fresh_index_is_not_updated() {
        let mut schedule = Schedule::default();
        let a = Path::new("/a");
        schedule.want(a, 0, FRESH);
        schedule.next();
        schedule.ended(1_000);
        assert_eq!(schedule.want(a, 10_999, FRESH), Wish::Nothing);
        assert_eq!(schedule.want(a, 11_000, FRESH), Wish::New);
    }

    #[test]
    fn i6_the_queue_is_bounded() {
        let mut schedule = Schedule::default();
        let dir = |n: usize| PathBuf::from(format!("/{n}"));
        for n in 0..MAX_WAITING {
            assert_eq!(schedule.want(&dir(n), 0, FRESH), Wish::New);
        }
        assert_eq!(schedule.want(&dir(MAX_WAITING), 0, FRESH), Wish::Nothing);
        for n in 0..2 * MAX_KNOWN {
            schedule.want(&dir(n), 0, Duration::ZERO);
            schedule.next();
            schedule.ended(1);
        }
        assert!(schedule.ended.len() <= MAX_KNOWN);
    }
}
