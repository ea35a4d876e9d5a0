//! The one thread that writes: it takes whatever waits, makes it one transaction, commits, then answers.

use super::files::DatabaseFiles;
use super::values::size;
use crate::StoreError;
use crate::lock::StoreLock;
use crate::metrics::{Counters, StoreMetrics};
use agentd_fault_points as fault;
use rusqlite::{Connection, ErrorCode};
use std::cell::RefCell;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// Changes that may wait.
const QUEUE: usize = 4_096;
/// What may wait, in KiB.
const QUEUE_KIB: u32 = 64 * 1024;
/// A transaction takes no more changes after so many events or bytes.
const BATCH_EVENTS: usize = 1_024;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// How much work a change is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

/// What became of the transaction that a change was in.
#[derive(Debug, Clone)]
enum Ending {
    Committed,
    Full,
    Refused(String),
    Stopped(String),
    Unknown,
}

/// A change that waits for its transaction.
trait Change: Send {
    fn weight(&self) -> Weight;
    /// Writes; can be called again when the transaction was rolled back.
    fn apply(&mut self, writer: &Connection) -> rusqlite::Result<()>;
    fn answer(self: Box<Self>, ending: Ending);
}

struct Pending<T, F> {
    weight: Weight,
    run: F,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    _room: OwnedSemaphorePermit,
}

impl<T: Send, F: FnMut(&Connection) -> rusqlite::Result<T> + Send> Change for Pending<T, F> {
    fn weight(&self) -> Weight {
        self.weight
    }

    fn apply(&mut self, writer: &Connection) -> rusqlite::Result<()> {
        self.value = Some((self.run)(writer)?);
        Ok(())
    }

    fn answer(self: Box<Self>, ending: Ending) {
        let result = match (ending, self.value) {
            (Ending::Committed, Some(value)) => Ok(value),
            (Ending::Full, _) => Err(StoreError::Full),
            (Ending::Refused(why), _) => Err(StoreError::Refused(why)),
            (Ending::Stopped(why), _) => Err(StoreError::Stopped(why)),
            (Ending::Unknown | Ending::Committed, _) => Err(StoreError::Unknown),
        };
        // The asker may have given up; the change stands all the same.
        let _ = self.reply.send(result);
    }
}

enum Order {
    Change(Box<dyn Change>),
    Close(oneshot::Sender<()>),
}

/// Everybody's end of the queue to the writer thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Order>,
    thread: Option<JoinHandle<()>>,
    room: Arc<Semaphore>,
    timeout: Duration,
    committed: watch::Receiver<u64>,
    fatal: watch::Receiver<Option<String>>,
    counters: Arc<Counters>,
}

impl Writer {
    /// Starts the thread. It owns the connection and the lock, and gives both back when it ends.
    pub(super) fn start(
        writer: Connection,
        lock: Vec<StoreLock>,
        files: DatabaseFiles,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let last: i64 =
            writer.query_row("SELECT coalesce(max(cursor), 0) FROM event", [], |row| row.get(0))?;
        let (queue, orders) = mpsc::channel(QUEUE);
        let (committed_tx, committed) = watch::channel(size(last));
        let (fatal_tx, fatal) = watch::channel(None);
        let counters = Arc::new(Counters::default());
        let state = Thread {
            writer,
            files: RefCell::new(files),
            committed: committed_tx,
            fatal: fatal_tx,
            counters: Arc::clone(&counters),
        };
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || state.run(orders, lock))
            .map_err(|error| StoreError::io("store-writer", error))?;
        let room = Arc::new(Semaphore::new(QUEUE_KIB as usize));
        Ok(Self {
            queue,
            thread: Some(thread),
            room,
            timeout,
            committed,
            fatal,
            counters,
        })
    }

    /// Queues a change and waits until it is durable. `run` may be called more than once, each time from a clean slate.
    pub(super) async fn change<T, F>(&self, weight: Weight, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let begun = Instant::now();
        let deadline = begun + self.timeout;
        let kib = u32::try_from(weight.bytes / 1024 + 1)
            .unwrap_or(QUEUE_KIB)
            .min(QUEUE_KIB);
        let room = timeout_at(deadline, Arc::clone(&self.room).acquire_many_owned(kib)).await;
        let room = room
            .map_err(|_| StoreError::Busy("the write queue is full"))?
            .map_err(|_| self.stopped())?;
        let (reply, answer) = oneshot::channel();
        let change = Box::new(Pending {
            weight,
            run,
            value: None,
            reply,
            _room: room,
        });
        match timeout_at(deadline, self.queue.send(Order::Change(change))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(self.stopped()),
            Err(_) => return Err(StoreError::Busy("the write queue is full")),
        }
        match timeout_at(deadline, answer).await {
            Ok(Ok(result)) => {
                self.counters.change(begun.elapsed());
                result
            }
            // The thread ended with the change in its queue or in its hands.
            Ok(Err(_)) | Err(_) => Err(StoreError::Unknown),
        }
    }

    /// Lets what is queued be written, then ends the thread.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let (done, ended) = oneshot::channel();
        let deadline = Instant::now() + self.timeout;
        match timeout_at(deadline, self.queue.send(Order::Close(done))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Ok(()),
            Err(_) => return Err(StoreError::Busy("the write queue is full")),
        }
        timeout_at(deadline, ended)
            .await
            .map_err(|_| StoreError::Unknown)?
            .or(Ok(()))
    }

    pub(super) fn metrics(&self) -> StoreMetrics {
        self.counters.read()
    }

    pub(super) fn committed(&self) -> watch::Receiver<u64> {
        self.committed.clone()
    }

    pub(super) fn fatal(&self) -> watch::Receiver<Option<String>> {
        self.fatal.clone()
    }

    fn stopped(&self) -> StoreError {
        StoreError::Stopped(
            self.fatal
                .borrow()
                .clone()
                .unwrap_or_else(|| "it was closed".to_owned()),
        )
    }
}

impl Drop for Writer {
    /// Waits for the last transaction, so that whoever drops the store can open it again.
    fn drop(&mut self) {
        self.queue = mpsc::channel(1).0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Thread {
    writer: Connection,
    files: RefCell<DatabaseFiles>,
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
    fn run(self, mut orders: mpsc::Receiver<Order>, lock: Vec<StoreLock>) {
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
                    Order::Close(done) => {
                        orders.close();
                        closing.push(done);
                    }
                }
                let open = weight.events < BATCH_EVENTS && weight.bytes < BATCH_BYTES;
                next = if open { orders.try_recv().ok() } else { None };
            }
            if lock.iter().any(StoreLock::is_gone) {
                self.stop(
                    "its lock file was deleted, and most likely the data with it",
                    false,
                );
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
                // One bad change must not cost the others theirs: each gets a transaction of its own.
                Ending::Full | Ending::Refused(_) if batch.len() > 1 => {
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
        if let Err(why) = self.files.borrow_mut().check() {
            return self.stop(&why, false);
        }
        let begun = std::time::Instant::now();
        if let Err(error) = self.apply(batch) {
            let ending = self.judge(&error, false);
            self.roll_back();
            return ending;
        }
        if let Err(injected) = fault::point(fault::IN_BATCH) {
            self.roll_back();
            return self.stop(&injected.to_string(), false);
        }
        if let Err(error) = self.writer.execute_batch("COMMIT") {
            let ending = self.judge(&error, true);
            self.roll_back();
            return ending;
        }
        // Before anything is acknowledged: was it written to where it will be found?
        if let Err(why) = self.files.borrow_mut().check() {
            return self.stop(&why, true);
        }
        let after = fault::point(fault::AFTER_COMMIT);
        self.counters.batch(batch.len(), begun.elapsed());
        self.announce();
        if after.is_ok() {
            Ending::Committed
        } else {
            Ending::Unknown
        }
    }

    fn apply(&self, batch: &mut [Box<dyn Change>]) -> rusqlite::Result<()> {
        self.writer.execute_batch("BEGIN IMMEDIATE")?;
        batch.iter_mut().try_for_each(|change| change.apply(&self.writer))
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

    /// Some errors end the transaction by themselves; a second ROLLBACK would then be an error of its own.
    fn roll_back(&self) {
        if self.writer.is_autocommit() {
            return;
        }
        if let Err(error) = self.writer.execute_batch("ROLLBACK") {
            self.stop(&format!("rollback: {error}"), false);
        }
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

    /// After an I/O error nothing that the disk says can be trusted: refuse everything, tell the owner.
    fn stop(&self, why: &str, committing: bool) -> Ending {
        tracing::error!(error = why, "the store stops for good");
        self.fatal.send_replace(Some(why.to_owned()));
        if committing {
            Ending::Unknown
        } else {
            Ending::Stopped(why.to_owned())
        }
    }
}
