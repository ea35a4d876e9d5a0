//! Runs one call.

use crate::pool::{System, pool};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, sleep_until};

/// Runs the file work of one requester. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FileWork {
    requester: Arc<str>,
}

/// Why there is no result. The call may still take effect later, unless it was never started.
#[derive(thiserror::Error)]
pub enum Failed {
    /// The file system does not answer at all.
    #[error("{}: the file system at {} does not answer", path.display(), mount.display())]
    Silent {
        /// The directory of the call.
        path: PathBuf,
        /// The mount point of the file system.
        mount: PathBuf,
    },
    /// The call took too long.
    #[error("{}: no answer from the file system at {} within {} s", path.display(), mount.display(), within.as_secs())]
    Late {
        /// The directory of the call.
        path: PathBuf,
        /// The mount point of the file system.
        mount: PathBuf,
        /// The call's deadline.
        within: Duration,
    },
    /// Other calls held all slots until the deadline.
    #[error("{}: too many file operations are running; none ended within {} s", path.display(), within.as_secs())]
    Busy {
        /// The directory of the call.
        path: PathBuf,
        /// The call's deadline.
        within: Duration,
    },
    /// Hanging calls hold all slots.
    #[error("{}: {calls} earlier operations hang in the file system at {}", path.display(), mount.display())]
    Full {
        /// The directory of the call.
        path: PathBuf,
        /// The mount point of the file system.
        mount: PathBuf,
        /// The number of hanging calls.
        calls: usize,
    },
    /// The work panicked.
    #[error("the file operation panicked")]
    Panicked(Box<dyn Any + Send>),
    /// The runtime is shutting down.
    #[error("the daemon is shutting down")]
    Ending,
}

impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Failed> for std::io::Error {
    fn from(failed: Failed) -> Self {
        Self::new(std::io::ErrorKind::TimedOut, failed.to_string())
    }
}

/// The slots of one call. They stay taken until its thread ends, even after the caller stopped waiting.
struct Slots {
    system: Arc<System>,
    call: u64,
    _permits: [OwnedSemaphorePermit; 3],
}

impl Slots {
    fn runs_here(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.system.state().runs(self.call, thread);
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.system.state().end(self.call);
    }
}

/// The caller that waits for a call. Dropping this abandons the call.
struct Waiter {
    system: Arc<System>,
    call: u64,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.system.state().abandon(self.call);
    }
}

impl FileWork {
    /// The file work of a session, by its id. All its calls share one bound.
    #[must_use]
    pub fn of_session(session: &str) -> Self {
        Self {
            requester: session.into(),
        }
    }

    /// The file work for a directory, if no session is known yet.
    #[must_use]
    pub fn of_directory(dir: &Path) -> Self {
        Self {
            requester: dir.to_string_lossy().into(),
        }
    }

    /// Runs work that may block on the file system of `dir`, on a blocking thread. `within` includes the wait for a slot.
    /// Dropping the future abandons the work, which continues. The work must not wait for other file work.
    ///
    /// # Errors
    /// When there is no slot or no result in time, the file system does not answer, or the file operation panicked.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where file work gets its threads"
    )]
    pub async fn run<T: Send + 'static>(
        &self,
        dir: &Path,
        within: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failed> {
        self.run_on(dir, within, work, |job| {
            tokio::task::spawn_blocking(job);
        })
        .await
    }

    /// The same on a thread that `start` creates, for work that changes its thread's state.
    ///
    /// # Errors
    /// As [`FileWork::run`].
    pub async fn run_on<T: Send + 'static>(
        &self,
        dir: &Path,
        within: Duration,
        work: impl FnOnce() -> T + Send + 'static,
        start: impl FnOnce(Box<dyn FnOnce() + Send>),
    ) -> Result<T, Failed> {
        let wait = Wait {
            path: dir,
            system: pool().system(dir),
            within,
            deadline: Instant::now() + within,
        };
        let slots = self.slots(&wait).await?;
        let _waiter = Waiter {
            system: Arc::clone(&wait.system),
            call: slots.call,
        };
        let (answer, done) = oneshot::channel();
        start(Box::new(move || {
            slots.runs_here();
            let result = catch_unwind(AssertUnwindSafe(work));
            drop(slots);
            let _ = answer.send(result);
        }));
        match wait.of(done).await? {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(panic)) => Err(Failed::Panicked(panic)),
            Err(_) => Err(Failed::Ending),
        }
    }

    async fn slots(&self, wait: &Wait<'_>) -> Result<Slots, Failed> {
        let (own, limit) = pool().requester(&self.requester);
        let all = Arc::clone(&pool().all);
        wait.fail_fast(&self.requester, limit)?;
        let acquire = async {
            let take =
                |slots: Arc<Semaphore>| async { slots.acquire_owned().await.map_err(|_| Failed::Ending) };
            // Takes the requester's own slot first: while it waits for that, it holds no slot that others need.
            let own = take(own).await?;
            let system = take(Arc::clone(&wait.system.slots)).await?;
            Ok([own, system, take(all).await?])
        };
        let permits = wait.of(acquire).await.map_err(|failed| match failed {
            Failed::Late { path, within, .. } => Failed::Busy { path, within },
            failed => failed,
        })??;
        let call = wait
            .system
            .state()
            .begin(&self.requester, wait.path, Instant::now());
        Ok(Slots {
            system: Arc::clone(&wait.system),
            call,
            _permits: permits,
        })
    }
}

/// A wait for a file system.
struct Wait<'a> {
    path: &'a Path,
    system: Arc<System>,
    within: Duration,
    deadline: Instant,
}

impl Wait<'_> {
    /// Fails if waiting would be pointless.
    fn fail_fast(&self, requester: &str, own_limit: usize) -> Result<(), Failed> {
        let now = Instant::now();
        let (own, all) = self.system.state().stuck(requester, now);
        self.answers(now)?;
        if own < own_limit && all < self.system.limit {
            return Ok(());
        }
        // The next caller needs to know whether it responds by then.
        self.probe(now);
        Err(Failed::Full {
            path: self.path.to_owned(),
            mount: self.system.mount.clone(),
            calls: if own < own_limit { all } else { own },
        })
    }

    fn answers(&self, now: Instant) -> Result<(), Failed> {
        match self.system.state().silent_since(now) {
            None => Ok(()),
            Some(_) => Err(Failed::Silent {
                path: self.path.to_owned(),
                mount: self.system.mount.clone(),
            }),
        }
    }

    /// Waits for a future that the file system may delay.
    async fn of<T>(&self, what: impl Future<Output = T>) -> Result<T, Failed> {
        tokio::pin!(what);
        let mut look = Instant::now() + crate::system::PATIENCE;
        loop {
            tokio::select! {
                biased;
                done = &mut what => return Ok(done),
                () = sleep_until(look.min(self.deadline)) => {}
            }
            let now = Instant::now();
            self.answers(now)?;
            if now >= self.deadline {
                return Err(Failed::Late {
                    path: self.path.to_owned(),
                    mount: self.system.mount.clone(),
                    within: self.within,
                });
            }
            self.probe(now);
            look = self.system.state().next_look(now);
        }
    }

    /// Probes the file system with `statfs`, which the kernel does not answer from a cache, unless a probe is under way.
    #[expect(
        clippy::disallowed_methods,
        reason = "a probe is file work, one per file system at most"
    )]
    fn probe(&self, now: Instant) {
        if !self.system.state().wants_probe(now) {
            return;
        }
        let system = Arc::clone(&self.system);
        tokio::task::spawn_blocking(move || {
            // An error is a response, too.
            let _ = rustix::fs::statfs(&system.mount);
            system.state().probe_ended();
        });
    }
}

#[cfg(test)]
mod tests;
