//! The warden's own kills: processes that exceed a bound, and at the end all of them.

use super::{AGAIN, AGAIN_AT_MOST, END_WITHIN, Resident};
use crate::bounds::{Bound, Bounds, Exceeded};
use crate::error::SandboxError;
use crate::frame::Report;
use crate::processes::{Table, below, childless, next_dead, signal, table, with_descendants};
use crate::recheck::Recheck;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long to kill what exceeded a bound before reading the daemon's messages again.
const PURGE_WITHIN: Duration = Duration::from_secs(5);

impl Resident {
    /// Checks the commands' usage when it is due. If a bound is exceeded, kills everything that runs in the session: the
    /// usage cannot be attributed to one command.
    pub(super) fn look_out(&mut self) -> Result<(), SandboxError> {
        let begun = Instant::now();
        if self.watch.due().is_none_or(|due| due > begun) {
            return Ok(());
        }
        if childless() {
            self.watch.rest();
            return Ok(());
        }
        let table = below(self.own);
        let living = self.living_of(&table);
        let Some(exceeded) = self.watch.look(&table, &living, begun) else {
            return Ok(());
        };
        if self.running.is_empty() {
            self.say(&Report::Exceeded { exceeded })?;
        }
        self.exceeded
            .extend(self.running.keys().map(|id| (*id, exceeded)));
        self.freeze();
        let until = Instant::now() + PURGE_WITHIN;
        let mut recheck = Recheck::new(AGAIN, AGAIN_AT_MOST);
        loop {
            self.reap()?;
            if !self.kill_all(&mut recheck, until) {
                return Ok(());
            }
        }
    }

    /// Stops every descendant, so that none can fork away.
    fn freeze(&self) {
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

    /// Kills every descendant: first stops all, then kills until none is left (I5).
    pub(super) fn end(&mut self) {
        self.freeze();
        let until = Instant::now() + END_WITHIN;
        let mut recheck = Recheck::new(AGAIN, AGAIN_AT_MOST);
        loop {
            while next_dead().is_some() {}
            if !self.kill_all(&mut recheck, until) {
                return;
            }
        }
    }

    /// Kills all descendants and waits until one exits or the next check is due. Returns whether to check again: some were
    /// there, and it is not too late.
    fn kill_all(&self, recheck: &mut Recheck, until: Instant) -> bool {
        let living = self.living();
        let now = Instant::now();
        if living.is_empty() || now > until {
            return false;
        }
        for pid in &living {
            signal(*pid, Signal::KILL);
        }
        let pause = recheck.pause(living.into_iter().collect());
        self.wait_until(Some(now + pause), false);
        true
    }

    fn living(&self) -> BTreeSet<i32> {
        if childless() {
            return BTreeSet::new();
        }
        self.living_of(&table())
    }

    fn living_of(&self, table: &Table) -> BTreeSet<i32> {
        let mut below = with_descendants(table, [self.own]);
        below.retain(|pid| *pid != self.own && table.get(pid).is_some_and(|process| !process.dead));
        below
    }
}

/// A command that was killed for exceeding the file size limit, or a shell that reports this of its last program.
pub(super) fn file_too_large(code: Option<i32>, signal: Option<i32>, bounds: Bounds) -> Option<Exceeded> {
    let ended = signal == Some(libc::SIGXFSZ) || code == Some(128 + libc::SIGXFSZ);
    ended.then_some(Exceeded {
        bound: Bound::FileSize,
        limit: bounds.file,
        earlier: false,
    })
}
