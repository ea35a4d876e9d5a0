//! The writer thread: puts all waiting changes into one transaction, commits it, updates the witness, then answers.

use crate::files::DatabaseFiles;
use crate::salvage;
use crate::values::size;
use crate::witness::{Head, Witness};
use crate::writer::Weight;
use agentd_fault_points as fault;
use agentd_store::StoreLock;
use agentd_store::backend::Counters;
use rusqlite::{Connection, ErrorCode};
use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// A transaction takes no more changes once it has this many events or bytes.
const BATCH_EVENTS: usize = 1_024;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// How the transaction of a change ended.
#[derive(Debug, Clone)]
pub(crate) enum Ending {
    Committed,
    Full,
    Refused(String),
    /// It needs a page that is damaged. Nothing was written.
    Damaged(String),
    Stopped(String),
    Unknown,
}

/// The transaction of a change.
#[derive(Debug)]
pub(crate) struct Tx<'a> {
    connection: &'a Connection,
    heads: &'a RefCell<Vec<Head>>,
}

impl Tx<'_> {
    /// Queues a record for the witness.
    pub(crate) fn note(&self, head: Head) {
        self.heads.borrow_mut().push(head);
    }
}

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

/// The parts of an open database that the thread owns.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) connection: Connection,
    pub(crate) files: DatabaseFiles,
    pub(crate) witness: Witness,
}

/// A change that waits for its transaction.
pub(crate) trait Change: Send {
    fn weight(&self) -> Weight;
    /// Writes the change. The thread calls it again after a rollback.
    fn apply(&mut self, tx: &Tx<'_>) -> rusqlite::Result<()>;
    fn answer(self: Box<Self>, ending: Ending);
}

/// Requests to the thread.
pub(crate) enum Order {
    Change(Box<dyn Change>),
    /// Check the files, because a read failed.
    Look,
    Close(oneshot::Sender<()>),
}

/// The state of the writer thread.
pub(crate) struct Thread {
    writer: Connection,
    files: RefCell<DatabaseFiles>,
    witness: RefCell<Witness>,
    /// The witness records of the current transaction.
    heads: RefCell<Vec<Head>>,
    committed: watch::Sender<u64>,
    fatal: watch::Sender<Option<String>>,
    counters: Arc<Counters>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fatal
                .send_replace(Some("the writer thread panicked".to_owned()));
        }
    }
}

impl Thread {
    pub(crate) fn new(
        database: Database,
        committed: watch::Sender<u64>,
        fatal: watch::Sender<Option<String>>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            writer: database.connection,
            files: RefCell::new(database.files),
            witness: RefCell::new(database.witness),
            heads: RefCell::default(),
            committed,
            fatal,
            counters,
        }
    }

    /// Runs until the queue is closed. Releases the lock last.
    pub(crate) fn run(self, mut orders: mpsc::Receiver<Order>, lock: Vec<StoreLock>) {
        let mut closing = Vec::new();
        let mut batch = Vec::new();
        while let Some(order) = orders.blocking_recv() {
            let mut weight = Weight { events: 0, bytes: 0 };
            let mut next = Some(order);
            while let Some(order) = next {
                match order {
                    Order::Change(change) => {
                        weight.events += change.weight().events;
                        weight.bytes += change.weight().bytes;
                        batch.push(change);
                    }
                    Order::Look => self.look(),
                    Order::Close(done) => {
                        orders.close();
                        closing.push(done);
                    }
                }
                let open = weight.events < BATCH_EVENTS && weight.bytes < BATCH_BYTES;
                next = if open { orders.try_recv().ok() } else { None };
            }
            if lock.iter().any(StoreLock::is_gone) {
                self.stop("its lock file was deleted, and probably the data too", false);
            }
            self.write(&mut batch);
        }
        drop(self);
        drop(lock);
        for done in closing {
            let _ = done.send(());
        }
    }

    fn write(&self, batch: &mut Vec<Box<dyn Change>>) {
        if batch.is_empty() {
            return;
        }
        let stopped = self.fatal.borrow().clone();
        let ending = match stopped {
            Some(why) => Ending::Stopped(why),
            None => match self.transact(batch) {
                // A bad change must not fail the others: each gets its own transaction.
                Ending::Full | Ending::Refused(_) | Ending::Damaged(_) if batch.len() > 1 => {
                    for mut change in batch.drain(..) {
                        let ending = self.transact(std::slice::from_mut(&mut change));
                        change.answer(ending);
                    }
                    return;
                }
                ending => ending,
            },
        };
        for change in batch.drain(..) {
            change.answer(ending.clone());
        }
    }

    fn transact(&self, batch: &mut [Box<dyn Change>]) -> Ending {
        if let Some(why) = self.fatal.borrow().clone() {
            return Ending::Stopped(why);
        }
        if let Err(why) = self.check_files() {
            return self.stop(&why, false);
        }
        let begun = std::time::Instant::now();
        if let Err(error) = self.apply(batch) {
            let ending = match salvage::is_unreadable(&error) {
                true => self.damaged(&error),
                false => self.judge(&error, false),
            };
            self.roll_back();
            return ending;
        }
        if let Err(injected) = fault::point(fault::IN_BATCH) {
            self.roll_back();
            return self.stop(&injected.to_string(), false);
        }
        // The witness forgets sessions before the commit removes them, and records events only after the commit: a
        // crash in between leaves a witness that knows less.
        let (kept, gone): (Vec<Head>, Vec<Head>) =
            self.heads.take().into_iter().partition(|head| head.seq > 0);
        self.witness.borrow_mut().committed(&gone);
        if let Err(error) = self.writer.execute_batch("COMMIT") {
            let ending = self.judge(&error, true);
            self.roll_back();
            return ending;
        }
        // Before acknowledging anything, check that it was written to the files that a restart will open.
        if let Err(why) = self.check_files() {
            return self.stop(&why, true);
        }
        self.witness.borrow_mut().committed(&kept);
        let after = fault::point(fault::AFTER_COMMIT);
        self.counters.batch(batch.len(), begun.elapsed());
        self.announce();
        if after.is_ok() {
            Ending::Committed
        } else {
            Ending::Unknown
        }
    }

    /// Checks the files after a failed read. A daemon whose reads fail may never write again, so no transaction would check.
    fn look(&self) {
        if self.fatal.borrow().is_none()
            && let Err(why) = self.check_files()
        {
            self.stop(&why, false);
        }
    }

    fn check_files(&self) -> Result<(), String> {
        self.files.borrow_mut().check(|| {
            let ask = |what: &str| {
                self.writer
                    .query_row(&format!("PRAGMA {what}"), [], |row| row.get::<_, i64>(0))
            };
            let (pages, bytes) = (ask("page_count"), ask("page_size"));
            pages
                .ok()
                .zip(bytes.ok())
                .map_or(u64::MAX, |(pages, bytes)| size(pages).saturating_mul(size(bytes)))
        })
    }

    fn apply(&self, batch: &mut [Box<dyn Change>]) -> rusqlite::Result<()> {
        self.heads.borrow_mut().clear();
        self.writer.execute_batch("BEGIN IMMEDIATE")?;
        let tx = Tx {
            connection: &self.writer,
            heads: &self.heads,
        };
        batch.iter_mut().try_for_each(|change| change.apply(&tx))
    }

    fn announce(&self) {
        let newest = self
            .writer
            .prepare_cached("SELECT coalesce(max(cursor), 0) FROM event");
        if let Ok(cursor) = newest.and_then(|mut newest| newest.query_row([], |row| row.get::<_, i64>(0))) {
            let cursor = size(cursor);
            self.committed
                .send_if_modified(|seen| std::mem::replace(seen, cursor) != cursor);
        }
    }

    /// Some errors end the transaction themselves; a ROLLBACK would then fail as well.
    fn roll_back(&self) {
        if self.writer.is_autocommit() {
            return;
        }
        if let Err(error) = self.writer.execute_batch("ROLLBACK") {
            self.stop(&format!("rollback: {error}"), false);
        }
    }

    /// A page that cannot be read concerns the changes that need it and no other (I6), unless the file itself changed.
    fn damaged(&self, error: &rusqlite::Error) -> Ending {
        if let Err(why) = self.check_files() {
            return self.stop(&why, false);
        }
        tracing::error!(%error, "a change needs a damaged page of the database and is refused");
        Ending::Damaged(error.to_string())
    }

    fn judge(&self, error: &rusqlite::Error, committing: bool) -> Ending {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Ending::Full,
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::NoLargeFileSupport
                | ErrorCode::FileLockingProtocolFailed,
            ) => self.stop(&error.to_string(), committing),
            _ => Ending::Refused(error.to_string()),
        }
    }

    /// After an I/O error, nothing that the disk reports is reliable: refuse everything and tell the owner.
    fn stop(&self, why: &str, committing: bool) -> Ending {
        tracing::error!(error = why, "the store is stopping permanently");
        self.fatal.send_replace(Some(why.to_owned()));
        if committing {
            Ending::Unknown
        } else {
            Ending::Stopped(why.to_owned())
        }
    }
}
