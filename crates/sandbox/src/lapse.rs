//! The thread of a warden that kills everything at the deadline. It does nothing else and waits for nobody: the warden's first
//! thread may hang on a file system that does not answer, or in the middle of a message of a daemon that is stopped.

use crate::deadline::Watched;
use crate::descent::{Descent, kill};
use crate::processes::pause;
use crate::recheck::Recheck;
use nix::unistd::gettid;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The minimum and maximum interval between checks for processes that were killed and are not gone yet.
const AGAIN: Duration = Duration::from_millis(10);
const AGAIN_AT_MOST: Duration = Duration::from_secs(2);

/// The view of the warden's first thread on the deadline and on that thread.
#[derive(Debug)]
pub(crate) struct Lapse {
    watched: Arc<Watched>,
    killed: Arc<Mutex<BTreeSet<i32>>>,
    /// The number of the thread.
    pub(crate) thread: i32,
}

impl Lapse {
    /// Starts the thread for a timer.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn watch(timer: OwnedFd, descent: Descent) -> io::Result<Self> {
        let (watched, killed) = (Arc::new(Watched::new(timer)?), Arc::default());
        let (ready, number) = sync_channel(1);
        let (of_thread, also_killed) = (Arc::clone(&watched), Arc::clone(&killed));
        let thread = std::thread::Builder::new().name("deadline".to_owned());
        thread.spawn(move || {
            // The other thread waits for this.
            let _ = ready.send(gettid().as_raw());
            loop {
                end(&of_thread, descent, &also_killed);
            }
        })?;
        let thread = number.recv().map_err(io::Error::other)?;
        Ok(Self {
            watched,
            killed,
            thread,
        })
    }

    /// Whether no command may run.
    pub(crate) fn is_over(&self) -> bool {
        self.watched.is_over()
    }

    /// Whether the thread killed this process, which has exited. Asked once for each process, as another one may get its number.
    pub(crate) fn killed(&self, pid: i32) -> bool {
        let mut killed = self.killed.lock().unwrap_or_else(PoisonError::into_inner);
        killed.remove(&pid)
    }
}

/// Waits for the next end, and kills everything.
fn end(watched: &Watched, descent: Descent, killed: &Mutex<BTreeSet<i32>>) {
    let ends = PollFd::from_borrowed_fd(watched.descriptor(), PollFlags::IN);
    if poll(&mut [ends], None).is_err() || !watched.has_come() {
        return;
    }
    descent.freeze();
    let mut recheck = Recheck::new(AGAIN, AGAIN_AT_MOST);
    // If the daemon moves the deadline meanwhile, new commands may run.
    while watched.is_over() {
        let living = descent.living();
        if living.is_empty() {
            return;
        }
        // Before they exit, because the other thread asks then.
        killed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(&living);
        kill(&living);
        pause(recheck.pause(living.into_iter().collect()));
    }
}
