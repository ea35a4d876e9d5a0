//! The read connections, used outside the async threads.

use crate::error::Error;
use crate::schema;
use crate::threads::Threads;
use crate::writer::Doubts;
use agentd_store::StoreError;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// A few read-only connections. A read waits for a free one, at most until the timeout.
#[derive(Debug)]
pub(crate) struct Readers {
    file: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
    threads: Threads,
    timeout: Duration,
    doubts: Doubts,
}

impl Readers {
    pub(crate) fn new(
        file: PathBuf,
        connections: usize,
        threads: Threads,
        timeout: Duration,
        doubts: Doubts,
    ) -> Self {
        let permits = Arc::new(Semaphore::new(connections.max(1)));
        Self {
            file,
            idle: Arc::default(),
            permits,
            threads,
            timeout,
            doubts,
        }
    }

    /// Runs a read in its own transaction, so that it sees a consistent snapshot.
    pub(crate) async fn read<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let permit = tokio::time::timeout(self.timeout, Arc::clone(&self.permits).acquire_owned()).await;
        let permit = permit
            .map_err(|_| StoreError::Busy("all readers are in use"))?
            .map_err(|_| StoreError::Stopped("it was closed".to_owned()))?;
        let (file, idle) = (self.file.clone(), Arc::clone(&self.idle));
        let work = self.threads.run(move || {
            let free = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut reader = match free {
                Some(reader) => reader,
                None => schema::open_reader(&file)?,
            };
            let answer = at_one_moment(&mut reader, run);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            drop(permit);
            Ok(answer?)
        });
        let answer = work.await;
        // The log may have been truncated, or the database replaced.
        if let Err(StoreError::Database(_) | StoreError::Damaged(_)) = &answer {
            self.doubts.raise();
        }
        answer
    }

    /// Refuses reads from now on.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn at_one_moment<T>(
    reader: &mut Connection,
    run: impl FnOnce(&Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    // Dropping a read-only transaction rolls it back, which has the same effect as a commit.
    let moment = reader.transaction()?;
    run(&moment)
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use crate::store::SqliteStore;
    use crate::tests::kit::Kit;
    use agentd_store::{Options, Outcome, SessionLog as _};
    use std::fs::File;

    #[tokio::test]
    async fn i1_a_failed_read_has_the_files_looked_at() {
        let (kit, dir) = (Kit::memory(), tempfile::tempdir().unwrap());
        let file = dir.path().join("agentd.db");
        let store = SqliteStore::open(&file, dir.path(), Options::default()).unwrap();
        let append = kit.create(kit.session(), "first", 2);
        assert!(matches!(store.append(append).await, Outcome::Committed { .. }));
        let fails = || {
            let error = Error::Sqlite(rusqlite::Error::InvalidQuery);
            store.readers.read::<(), _>(|_| Err(error))
        };
        // The control: as long as the files are unchanged, the store continues.
        assert!(fails().await.is_err());
        let append = kit.create(kit.session(), "second", 2);
        assert!(matches!(store.append(append).await, Outcome::Committed { .. }));
        let log = File::options().write(true).open(dir.path().join("agentd.db-wal"));
        log.unwrap().set_len(512).unwrap();
        assert!(fails().await.is_err());
        let mut fatal = store.fatal();
        let why = fatal.wait_for(Option::is_some).await.unwrap().clone().unwrap();
        assert!(why.contains("agentd.db-wal was truncated"), "{why}");
    }
}
