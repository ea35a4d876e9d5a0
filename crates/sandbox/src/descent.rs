//! What a warden started and what that started: finding it, and killing all of it.

use crate::processes::{Table, childless, signal, table, with_descendants};
use rustix::process::Signal;
use std::collections::BTreeSet;

/// The descendants of this process, which is their subreaper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descent {
    pub(crate) own: i32,
}

impl Descent {
    /// Stops every descendant, so that none can fork away.
    pub(crate) fn freeze(self) {
        let mut stopped = BTreeSet::new();
        for _ in 0..100 {
            let living = self.living();
            if living.is_subset(&stopped) {
                break;
            }
            for pid in living.difference(&stopped) {
                signal(*pid, Signal::STOP);
            }
            stopped.extend(living);
        }
    }

    /// Every descendant that runs.
    pub(crate) fn living(self) -> BTreeSet<i32> {
        if childless() {
            return BTreeSet::new();
        }
        self.living_of(&table())
    }

    /// The living descendants in a table.
    pub(crate) fn living_of(self, table: &Table) -> BTreeSet<i32> {
        let mut below = with_descendants(table, [self.own]);
        below.retain(|pid| *pid != self.own && table.get(pid).is_some_and(|process| !process.dead));
        below
    }
}

/// Kills these processes.
pub(crate) fn kill(pids: &BTreeSet<i32>) {
    for pid in pids {
        signal(*pid, Signal::KILL);
    }
}
