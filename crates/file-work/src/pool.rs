//! The slots of this process, and the hanging calls per file system.

use crate::mounts::{Mount, Mounts};
use crate::system::State;
use crate::threads::is_held;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How many calls may be under way at once. Threads are a resource of the process, so this is set once per process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Per requester.
    pub requester: usize,
    /// Per file system.
    pub system: usize,
    /// In total: fewer than the runtime has blocking threads.
    pub all: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requester: 4,
            system: 32,
            all: 1_024,
        }
    }
}

/// A file system with calls that do not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hanging {
    /// Its mount point.
    pub mount: PathBuf,
    /// How long it has not responded at all; absent if it responds and only some calls hang.
    pub silent: Option<Duration>,
    /// The hanging calls.
    pub calls: Vec<HangingCall>,
}

/// A hanging call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HangingCall {
    /// The requester: a session's id, or a directory for work before there is a session.
    pub requester: String,
    /// The directory that it works in.
    pub path: PathBuf,
    /// How long it has been running.
    pub age: Duration,
}

/// One file system.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) mount: PathBuf,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) limit: usize,
    state: Mutex<State>,
}

impl System {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slots of the whole process.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) all: Arc<Semaphore>,
    limits: Limits,
    mounts: Mounts,
    /// By device.
    systems: BTreeMap<String, Arc<System>>,
    requesters: BTreeMap<Arc<str>, Arc<Semaphore>>,
}

static POOL: LazyLock<Mutex<Pool>> = LazyLock::new(|| Mutex::new(Pool::new(Limits::default())));

/// How many requesters and file systems to remember before dropping those without calls.
const REMEMBERED: usize = 1_024;

/// Sets the limits of this process; call it at the start. Calls under way count against the earlier limits.
pub fn set_limits(limits: Limits) {
    *pool() = Pool::new(limits);
}

/// The file systems with hanging calls, and the sessions that these belong to.
#[must_use]
pub fn hanging() -> Vec<Hanging> {
    let systems: Vec<Arc<System>> = pool().systems.values().cloned().collect();
    let now = Instant::now();
    systems.iter().filter_map(|system| system.hanging(now)).collect()
}

/// Names the file system of a path, by its device. Does not access the path.
#[must_use]
pub fn file_system(path: &Path) -> Arc<str> {
    pool().mounts.of(path).device.into()
}

pub(crate) fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn new(limits: Limits) -> Self {
        Self {
            all: Arc::new(Semaphore::new(limits.all.max(1))),
            limits,
            mounts: Mounts::default(),
            systems: BTreeMap::new(),
            requesters: BTreeMap::new(),
        }
    }

    /// The file system of a path. Does not access the path.
    pub(crate) fn system(&mut self, path: &Path) -> Arc<System> {
        let Mount { device, point } = self.mounts.of(path);
        if self.systems.len() > REMEMBERED {
            self.systems.retain(|_, system| !system.state().is_idle());
        }
        let limit = self.limits.system.max(1);
        let new = || {
            Arc::new(System {
                mount: point,
                slots: Arc::new(Semaphore::new(limit)),
                limit,
                state: Mutex::default(),
            })
        };
        Arc::clone(self.systems.entry(device).or_insert_with(new))
    }

    /// The slots of a requester, and their number.
    pub(crate) fn requester(&mut self, requester: &Arc<str>) -> (Arc<Semaphore>, usize) {
        if self.requesters.len() > REMEMBERED {
            self.requesters.retain(|_, slots| Arc::strong_count(slots) > 1);
        }
        let limit = self.limits.requester.max(1);
        let slots = self.requesters.entry(Arc::clone(requester));
        let slots = slots.or_insert_with(|| Arc::new(Semaphore::new(limit)));
        (Arc::clone(slots), limit)
    }
}

impl System {
    fn hanging(&self, now: Instant) -> Option<Hanging> {
        let state = self.state();
        let silent = state.silent_since(now);
        let age = |since| now.saturating_duration_since(since);
        let calls = state.reported(now, is_held).into_iter().map(|call| HangingCall {
            requester: call.requester.to_string(),
            path: call.path.clone(),
            age: age(call.since),
        });
        let calls: Vec<_> = calls.collect();
        (silent.is_some() || !calls.is_empty()).then(|| Hanging {
            mount: self.mount.clone(),
            silent: silent.map(age),
            calls,
        })
    }
}
