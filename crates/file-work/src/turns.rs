//! Limits heavy work per file system.

use crate::pool::file_system;
use crate::work::Failed;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// File systems to remember before dropping those without work.
const REMEMBERED: usize = 256;

/// Limits how much heavy work runs at once on each file system. With one limit for all of them, a file system that does
/// not respond would stop the work on the others.
#[derive(Debug)]
pub struct Turns {
    each: usize,
    systems: Mutex<BTreeMap<Arc<str>, Arc<Semaphore>>>,
}

impl Turns {
    /// Allows `each` pieces of work on each file system.
    #[must_use]
    pub const fn new(each: usize) -> Self {
        Self {
            each,
            systems: Mutex::new(BTreeMap::new()),
        }
    }

    /// Waits for a turn on the file system of a path. Does not access the path.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn on(&self, path: &Path) -> Result<OwnedSemaphorePermit, Failed> {
        let turns = self.of(file_system(path));
        turns.acquire_owned().await.map_err(|_| Failed::Ending)
    }

    fn of(&self, system: Arc<str>) -> Arc<Semaphore> {
        let mut systems = self.systems.lock().unwrap_or_else(PoisonError::into_inner);
        if systems.len() > REMEMBERED {
            systems.retain(|_, turns| Arc::strong_count(turns) > 1 || turns.available_permits() < self.each);
        }
        let turns = systems.entry(system);
        Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(self.each))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn i6_work_on_one_file_system_does_not_wait_for_another_one() {
        let turns = Turns::new(1);
        let held = turns.on(Path::new("/")).await.unwrap();
        assert!(turns.on(Path::new("/")).now_or_never().is_none());
        assert!(turns.on(Path::new("/proc/self")).now_or_never().is_some());
        drop(held);
        assert!(turns.on(Path::new("/")).now_or_never().is_some());
    }
}
