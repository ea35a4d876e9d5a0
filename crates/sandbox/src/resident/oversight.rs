//! The warden's own kills: processes that exceed a bound, and at the end all of them.

use super::{AGAIN, AGAIN_AT_MOST, END_WITHIN, Resident};
use crate::bounds::{Bound, Bounds, Exceeded};
use crate::descent::kill;
use crate::error::SandboxError;
use crate::frame::Report;
use crate::lapse::Lapse;
use crate::processes::{below, childless, next_dead};
use crate::recheck::Recheck;
use rustix::fd::OwnedFd;
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
        let living = self.descent.living_of(&table);
        let Some(exceeded) = self.watch.look(&table, &living, begun) else {
            return Ok(());
        };
        if self.running.is_empty() {
            self.say(&Report::Exceeded { exceeded })?;
        }
        self.purge(exceeded)
    }

    /// Starts the thread that kills everything at the deadline, if one came with the message. Without the thread that it should
    /// have, a warden runs nothing (I7).
    pub(super) fn obey_deadline(&mut self, descriptors: Vec<OwnedFd>) -> Result<(), SandboxError> {
        let watched = descriptors.into_iter().next();
        let watched = watched.map(|timer| Lapse::watch(timer, self.descent)).transpose();
        self.lapse = watched.map_err(|error| SandboxError::no_walls(format!("deadline: {error}")))?;
        Ok(())
    }

    /// Whether the deadline has passed.
    pub(super) fn is_over(&self) -> bool {
        self.lapse.as_ref().is_some_and(Lapse::is_over)
    }

    /// Kills what started while the deadline passed, which its thread may have missed.
    pub(super) fn end_what_came_late(&mut self) -> Result<(), SandboxError> {
        if self.is_over() {
            self.purge(Exceeded::LEASE)?;
        }
        Ok(())
    }

    /// Kills everything that runs in the session, for this reason.
    fn purge(&mut self, exceeded: Exceeded) -> Result<(), SandboxError> {
        self.exceeded
            .extend(self.running.keys().map(|id| (*id, exceeded)));
        self.descent.freeze();
        let until = Instant::now() + PURGE_WITHIN;
        let mut recheck = Recheck::new(AGAIN, AGAIN_AT_MOST);
        loop {
            self.reap()?;
            if !self.kill_all(&mut recheck, until) {
                return Ok(());
            }
        }
    }

    /// Kills every descendant: first stops all, then kills until none is left (I5).
    pub(super) fn end(&mut self) {
        self.descent.freeze();
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
        let living = self.descent.living();
        let now = Instant::now();
        if living.is_empty() || now > until {
            return false;
        }
        kill(&living);
        let pause = recheck.pause(living.into_iter().collect());
        self.wait_until(Some(now + pause), false);
        true
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
