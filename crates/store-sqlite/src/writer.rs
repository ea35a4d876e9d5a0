//! The interface to the writer thread: a bounded queue of changes, each with a deadline for its answer.

use crate::committer::{Change, Database, Ending, Order, Thread, Tx};
use agentd_store::StoreError;
use agentd_store::StoreLock;
use agentd_store::StoreMetrics;
use agentd_store::backend::Counters;
use rusqlite::Connection;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// The maximum number of queued changes.
const QUEUE: usize = 4_096;
/// The maximum size of the queue, in KiB.
const QUEUE_KIB: u32 = 64 * 1024;

/// The size of a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

struct Pending<T, F> {
    weight: Weight,
    run: F,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    _room: OwnedSemaphorePermit,
}

impl<T: Send, F: FnMut(&Tx<'_>) -> rusqlite::Result<T> + Send> Change for Pending<T, F> {
    fn weight(&self) -> Weight {
        self.weight
    }

    fn apply(&mut self, tx: &Tx<'_>) -> rusqlite::Result<()> {
        self.value = Some((self.run)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, ending: Ending) {
        let result = match (ending, self.value) {
            (Ending::Committed, Some(value)) => Ok(value),
            (Ending::Full, _) => Err(StoreError::Full),
            (Ending::Refused(why), _) => Err(StoreError::Refused(why)),
            (Ending::Damaged(why), _) => Err(StoreError::Damaged(why)),
            (Ending::Stopped(why), _) => Err(StoreError::Stopped(why)),
            (Ending::Unknown | Ending::Committed, _) => Err(StoreError::Unknown),
        };
        // The caller may have stopped waiting; the change remains committed.
        let _ = self.reply.send(result);
    }
}

/// Asks the thread to check the files.
#[derive(Debug)]
pub(crate) struct Doubts(mpsc::WeakSender<Order>);

impl Doubts {
    /// Does not wait: a full queue contains transactions, and each of them checks the files.
    pub(crate) fn raise(&self) {
        if let Some(queue) = self.0.upgrade() {
            let _ = queue.try_send(Order::Look);
        }
    }
}

/// The sending end of the queue to the writer thread, shared by all callers.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Order>,
    thread: Option<JoinHandle<()>>,
    room: Arc<Semaphore>,
    timeout: Duration,
    committed: watch::Receiver<u64>,
    fatal: watch::Receiver<Option<String>>,
    counters: Arc<Counters>,
}

impl Writer {
    /// Starts the thread. It owns the connection and the lock, and releases both when it ends.
    pub(crate) fn start(
        database: Database,
        last: u64,
        lock: Vec<StoreLock>,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let (queue, orders) = mpsc::channel(QUEUE);
        let (committed_tx, committed) = watch::channel(last);
        let (fatal_tx, fatal) = watch::channel(None);
        let counters = Arc::new(Counters::default());
        let state = Thread::new(database, committed_tx, fatal_tx, Arc::clone(&counters));
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

    /// Like [`Self::transact`], for changes that the witness need not record.
    pub(crate) async fn change<T, F>(&self, weight: Weight, mut run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.transact(weight, move |tx| run(tx)).await
    }

    /// Queues a change and waits until it is durable. `run` may run more than once, each time after a rollback.
    pub(crate) async fn transact<T, F>(&self, weight: Weight, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Tx<'_>) -> rusqlite::Result<T> + Send + 'static,
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
            // The thread ended before it answered the change.
            Ok(Err(_)) | Err(_) => Err(StoreError::Unknown),
        }
    }

    /// Writes the queued changes, then ends the thread.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
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

    /// For readers that suspect the files. Weak, since the thread ends when the last sender is dropped.
    pub(crate) fn doubts(&self) -> Doubts {
        Doubts(self.queue.downgrade())
    }

    pub(crate) fn metrics(&self) -> StoreMetrics {
        self.counters.read()
    }

    pub(crate) fn committed(&self) -> watch::Receiver<u64> {
        self.committed.clone()
    }

    pub(crate) fn fatal(&self) -> watch::Receiver<Option<String>> {
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
    /// Waits for the last transaction, so that the caller can open the store again after dropping it.
    fn drop(&mut self) {
        self.queue = mpsc::channel(1).0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
