//! The open store, and its log.

use crate::append::Staged;
use crate::blob_files::BlobFiles;
use crate::committer::{Database, Tx};
use crate::error::Error;
use crate::files::DatabaseFiles;
use crate::readers::Readers;
use crate::threads::Threads;
use crate::values::size;
use crate::witness::{Head, Witness};
use crate::writer::{Weight, Writer};
use crate::{append, backup, entries, mend, parts, queries, salvage, schema, spending, upkeep};
use agentd_fault_points as fault;
use agentd_protocol::{Labels, Principal, SessionId, Timestamp};
use agentd_store::StoreLock;
use agentd_store::backend::{ROW_LIMIT, durable_dir, is_name, name_of, private_dir, sync_names};
use agentd_store::parts::Parts;
use agentd_store::{
    Append, Blob, Charge, Clock, Filter, Integrity, Loss, Options, Outcome, Page, Purpose, Range, Row,
    SessionLog, Spending, StoreError, StoredKey, Watched, problem,
};
use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::watch;

/// A small change that is not an append.
pub(crate) const SMALL: Weight = Weight {
    events: 1,
    bytes: 512,
};

/// The number of threads that write large blobs.
const WRITING: usize = 4;

/// A store in one SQLite file, with large blobs in files next to it.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    file: PathBuf,
    pub(crate) writer: Writer,
    pub(crate) readers: Readers,
    threads: Threads,
    files: Arc<BlobFiles>,
    pub(crate) clock: Clock,
    /// This node's current registration; 0: none yet.
    pub(crate) node: AtomicI64,
    losses: Vec<Loss>,
    /// The witness was missing when the store was opened.
    without_witness: bool,
}

impl SqliteStore {
    pub(crate) fn open(file: &Path, data_dir: &Path, options: Options) -> Result<Self, StoreError> {
        durable_dir(data_dir)?;
        let blobs = data_dir.join("blobs");
        private_dir(&blobs)?;
        let mut locks = vec![StoreLock::take(&data_dir.join("agentd.lock"), &options.address)?];
        let parent = file.parent().unwrap_or(data_dir);
        durable_dir(parent)?;
        if parent != data_dir || options.purpose != Purpose::Serve {
            // Two daemons with different data directories could still use the same database file.
            let mut beside = file.as_os_str().to_owned();
            beside.push(".lock");
            locks.push(StoreLock::take(Path::new(&beside), &options.address)?);
        }
        // SQLite creates its side files with the mode of the database file.
        let made = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(file);
        made.map_err(|error| StoreError::io(file, error))?;
        let connection = schema::open_writer(file, options.max_bytes)?;
        let (witness, losses, last) = compare(&connection, file, &options)
            .map_err(|error| salvage::explain(&connection, file, error))?;
        let without_witness = witness.was_missing();
        // SQLite also syncs the name of its log, but ignores a failure.
        [data_dir, parent].into_iter().try_for_each(sync_names)?;
        // These threads also write large blobs.
        let threads = Threads::new(options.readers.saturating_add(WRITING))?;
        let database = Database {
            connection,
            files: DatabaseFiles::of(file),
            witness,
        };
        let writer = Writer::start(database, last, locks, options.write_timeout)?;
        let readers = Readers::new(
            file.to_owned(),
            options.readers,
            threads.clone(),
            options.read_timeout,
            writer.doubts(),
        );
        Ok(Self {
            file: file.to_owned(),
            writer,
            readers,
            threads,
            files: Arc::new(BlobFiles::new(blobs)),
            clock: options.clock,
            node: AtomicI64::new(0),
            losses,
            without_witness,
        })
    }

    pub(crate) fn owner(&self) -> Option<i64> {
        Some(self.node.load(Ordering::Acquire)).filter(|node| *node != 0)
    }

    /// Writes large blobs to disk before the event that names them is queued, and keeps that work off the writer thread.
    pub(crate) async fn write_files(&self, blobs: &[Blob]) -> Result<(), StoreError> {
        let large: Vec<Blob> = blobs
            .iter()
            .filter(|blob| blob.bytes().len() > ROW_LIMIT)
            .cloned()
            .collect();
        if large.is_empty() {
            return Ok(());
        }
        let files = Arc::clone(&self.files);
        let done = self.threads.run(move || {
            large
                .iter()
                .try_for_each(|blob| files.put(blob.name(), blob.bytes()))
        });
        done.await.map_err(|error| match error {
            StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                StoreError::Full
            }
            other => other,
        })
    }

    async fn try_append(&self, append: Append) -> Result<Outcome, StoreError> {
        if let Some(refusal) = append.malformed() {
            return Ok(refusal);
        }
        let refused = |injected: fault::Injected| StoreError::Refused(injected.to_string());
        fault::point(fault::BEFORE_APPEND).map_err(refused)?;
        let kinds = fault::Kinds::of(append.events.iter().map(|event| event.kind.as_ref()));
        fault::fact(fault::FACT_BEFORE, &kinds).map_err(refused)?;
        self.write_files(&append.blobs).await?;
        let weight = Weight {
            events: append.events.len().max(1),
            bytes: append.bytes(),
        };
        let session = append.session;
        let staged = Staged::new(append, self.owner(), self.clock.clone(), Arc::clone(&self.files))?;
        let outcome = self
            .writer
            .transact(weight, move |tx| {
                let outcome = staged.apply(tx)?;
                if let Outcome::Committed { head: seq, cursor } = outcome {
                    tx.note(Head { cursor, session, seq });
                }
                Ok(outcome)
            })
            .await?;
        fault::fact(fault::FACT_AFTER, &kinds).map_err(|_| StoreError::Unknown)?;
        Ok(outcome)
    }
}

/// Repairs rows and compares the database with its witness. Returns the losses, and the cursor of the newest event.
fn compare(
    connection: &Connection,
    file: &Path,
    options: &Options,
) -> Result<(Witness, Vec<Loss>, u64), Error> {
    if options.purpose != Purpose::Destination {
        parts::refuse_unfinished(connection)?;
    }
    let aside = mend::all(connection)?;
    let (witness, losses) = Witness::open(file, connection, options.accept_loss, &aside)?;
    let newest = "SELECT coalesce(max(cursor), 0) FROM event";
    let last: i64 = connection.query_row(newest, [], |row| row.get(0))?;
    Ok((witness, losses, size(last)))
}

#[async_trait]
impl SessionLog for SqliteStore {
    async fn append(&self, append: Append) -> Outcome {
        self.try_append(append).await.into()
    }

    async fn load(&self, session: SessionId, range: Range) -> Result<Page, StoreError> {
        self.readers
            .read(move |reader| queries::load(reader, session, range))
            .await
    }

    async fn row(&self, session: SessionId) -> Result<Option<Row>, StoreError> {
        self.readers
            .read(move |reader| queries::row(reader, session))
            .await
    }

    async fn resolve(&self, text: &str, labels: &Labels) -> Result<Vec<(SessionId, String)>, StoreError> {
        let (text, labels) = (text.to_owned(), serde_json::to_string(labels)?);
        self.readers
            .read(move |reader| queries::resolve(reader, &text, &labels))
            .await
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError> {
        self.readers
            .read(move |reader| queries::list(reader, &filter))
            .await
    }

    async fn count(&self) -> Result<u64, StoreError> {
        self.readers.read(queries::count).await
    }

    async fn states(&self, of: Option<Vec<SessionId>>) -> Result<BTreeMap<String, u64>, StoreError> {
        self.readers
            .read(move |reader| queries::states(reader, of.as_deref()))
            .await
    }

    async fn key(&self, principal: &Principal, key: &str) -> Result<Option<StoredKey>, StoreError> {
        let (principal, key, now) = (principal.clone(), key.to_owned(), self.clock.now());
        self.readers
            .read(move |reader| entries::key(reader, &principal, &key, now))
            .await
    }

    async fn blob(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        if !is_name(name) {
            return Ok(None);
        }
        let (name, files) = (name.to_owned(), Arc::clone(&self.files));
        self.readers
            .read(move |reader| {
                let bytes = match queries::blob(reader, &name)? {
                    Some(None) => files.get(&name)?,
                    Some(row) => row,
                    None => None,
                };
                match bytes {
                    Some(bytes) if name_of(&bytes) != name => Err(StoreError::DamagedBlob(name).into()),
                    bytes => Ok(bytes),
                }
            })
            .await
    }

    async fn put_blob(&self, session: SessionId, bytes: Bytes) -> Result<String, StoreError> {
        let (blob, files) = (Blob::new(bytes), Arc::clone(&self.files));
        let name = blob.name().to_owned();
        self.write_files(std::slice::from_ref(&blob)).await?;
        let weight = Weight {
            events: 1,
            bytes: blob.bytes().len(),
        };
        let put = move |writer: &rusqlite::Connection| match append::live(writer, session)? {
            Some(id) => append::put_blob(writer, &files, &blob, id).map(|()| true),
            None => Ok(false),
        };
        if self.writer.change(weight, put).await? {
            Ok(name)
        } else {
            Err(StoreError::NotFound(session))
        }
    }

    async fn share_blobs(&self, from: SessionId, to: SessionId) -> Result<(), StoreError> {
        let weight = Weight { events: 1, bytes: 0 };
        let share = move |writer: &rusqlite::Connection| {
            let (from_id, to_id) = (append::live(writer, from)?, append::live(writer, to)?);
            let (Some(from_id), Some(to_id)) = (from_id, to_id) else {
                return Ok(from_id.map_or(Some(from), |_| Some(to)));
            };
            let mut share = writer.prepare_cached(
                "INSERT OR IGNORE INTO blob_use(name, session_id, sum)
                 SELECT name, ?2, agentd_sum(name, ?2) FROM blob_use WHERE session_id = ?1 AND sum IS agentd_sum(name, session_id)",
            )?;
            share.execute(params![from_id, to_id])?;
            Ok(None)
        };
        match self.writer.change(weight, share).await? {
            Some(missing) => Err(StoreError::NotFound(missing)),
            None => Ok(()),
        }
    }

    async fn watch(&self, after: Option<u64>, limit: u32) -> Result<Watched, StoreError> {
        self.readers
            .read(move |reader| queries::watch(reader, after, limit))
            .await
    }

    async fn charged(&self, account: &str) -> Result<Charge, StoreError> {
        let account = account.to_owned();
        self.readers
            .read(move |reader| entries::charged(reader, &account))
            .await
    }

    async fn spent(&self) -> Result<Vec<Spending>, StoreError> {
        self.readers.read(spending::read).await
    }

    async fn delete(&self, session: SessionId) -> Result<bool, StoreError> {
        let now = self.clock.now();
        self.writer
            .change(SMALL, move |writer| upkeep::delete(writer, session, now))
            .await
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        let now = self.clock.now();
        self.writer
            .change(SMALL, move |writer| upkeep::forget_keys(writer, now))
            .await?;
        let mut sessions = 0;
        loop {
            let files = Arc::clone(&self.files);
            let some = move |tx: &Tx<'_>| upkeep::purge_some(tx, &files, before);
            let (removed, more) = self.writer.transact(SMALL, some).await?;
            sessions += removed;
            if !more {
                break;
            }
        }
        while self.writer.change(SMALL, upkeep::give_back).await? {}
        Ok(sessions)
    }

    async fn check(&self) -> Result<Integrity, StoreError> {
        let files = Arc::clone(&self.files);
        let mut found = self
            .readers
            .read(move |reader| upkeep::check(reader, &files))
            .await?;
        found.bytes += upkeep::file_bytes(&self.file);
        if self.without_witness {
            let mut witness = self.file.clone().into_os_string();
            witness.push(".witness");
            found.warnings.push(problem::no_witness(Path::new(&witness)));
        }
        Ok(found)
    }

    async fn copy_into(&self, dir: &Path) -> Result<agentd_store::Copied, StoreError> {
        let (file, files, dir) = (self.file.clone(), Arc::clone(&self.files), dir.to_owned());
        // On a thread of its own, so that a long copy does not block readers.
        let copy = Threads::new(1)?;
        copy.run(move || Ok(backup::copy(&file, &files, &dir)?)).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        let closed = self.writer.close().await;
        self.readers.close();
        closed
    }

    fn parts(&self) -> Option<&dyn Parts> {
        Some(self)
    }

    fn metrics(&self) -> agentd_store::StoreMetrics {
        self.writer.metrics()
    }

    fn committed(&self) -> watch::Receiver<u64> {
        self.writer.committed()
    }

    fn fatal(&self) -> watch::Receiver<Option<String>> {
        self.writer.fatal()
    }

    fn losses(&self) -> &[Loss] {
        &self.losses
    }
}
