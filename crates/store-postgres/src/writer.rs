//! The writer: a bounded queue, and a task that sends all that waits as one statement. One per process: the server carries out
//! the batches of all nodes one after another, so a second one would only make each batch smaller.

use crate::batch::{Batch, Distinct, SQL, outcomes};
use crate::error::{Failure, failure};
use crate::own::Own;
use crate::server::Server;
use agentd_fault_points as fault;
use agentd_store::backend::{Counters, KEY_LIFE_MS, column};
use agentd_store::{Append, Clock, Outcome, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::{Client, Statement};

/// The maximum number of queued appends.
const QUEUE: usize = 4_096;
/// The maximum size of the queue, in KiB.
const QUEUE_KIB: u32 = 64 * 1024;
/// A statement takes no more appends once it has this many events or bytes.
const BATCH_EVENTS: usize = 1_024;
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// The pause before the next try to connect.
const AGAIN: Duration = Duration::from_millis(250);
/// How long a statement may take until the connection counts as lost; longer than its timeout on the server.
const ANSWER: Duration = Duration::from_secs(40);

/// An append that waits.
#[derive(Debug)]
struct Pending {
    append: Append,
    deadline: Instant,
    reply: oneshot::Sender<Result<Outcome, StoreError>>,
    _room: OwnedSemaphorePermit,
}

#[derive(Debug)]
enum Order {
    Append(Box<Pending>),
    Close(oneshot::Sender<()>),
}

/// State that the writer shares with the rest of the store.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) server: Server,
    pub(crate) clock: Clock,
    pub(crate) node: Arc<AtomicI64>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) committed: watch::Sender<u64>,
    pub(crate) own: Arc<Own>,
    pub(crate) fatal: watch::Sender<Option<String>>,
}

/// The sending end of the queue.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Order>,
    room: Arc<Semaphore>,
    timeout: Duration,
    shared: Shared,
}

impl Writer {
    pub(crate) fn start(shared: Shared, timeout: Duration) -> Self {
        let (queue, orders) = mpsc::channel(QUEUE);
        let task = Task {
            shared: shared.clone(),
            connection: None,
            next: None,
        };
        tokio::spawn(task.run(orders));
        Self {
            queue,
            room: Arc::new(Semaphore::new(QUEUE_KIB as usize)),
            timeout,
            shared,
        }
    }

    /// Queues an append and waits until it is durable.
    pub(crate) async fn append(&self, append: Append) -> Result<Outcome, StoreError> {
        const FULL: StoreError = StoreError::Busy("the write queue is full");
        let begun = Instant::now();
        let deadline = begun + self.timeout;
        let kib = u32::try_from(append.bytes() / 1024 + 1).unwrap_or(QUEUE_KIB);
        let room = Arc::clone(&self.room).acquire_many_owned(kib.min(QUEUE_KIB));
        let room = timeout_at(deadline, room).await.map_err(|_| FULL)?;
        let room = room.map_err(|_| self.stopped())?;
        let (reply, answer) = oneshot::channel();
        let order = Order::Append(Box::new(Pending {
            append,
            deadline,
            reply,
            _room: room,
        }));
        let sent = timeout_at(deadline, self.queue.send(order)).await;
        sent.map_err(|_| FULL)?.map_err(|_| self.stopped())?;
        match timeout_at(deadline + ANSWER, answer).await {
            Ok(Ok(result)) => {
                self.shared.counters.change(begun.elapsed());
                result
            }
            Ok(Err(_)) | Err(_) => Err(StoreError::Unknown),
        }
    }

    /// Writes what is queued, then ends the task.
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

    fn stopped(&self) -> StoreError {
        stopped(&self.shared)
    }
}

/// The error of a store that has stopped.
fn stopped(shared: &Shared) -> StoreError {
    let why = shared.fatal.borrow().clone();
    StoreError::Stopped(why.unwrap_or_else(|| "it was closed".to_owned()))
}

struct Task {
    shared: Shared,
    connection: Option<(Client, Statement)>,
    /// An append that could not be in the last batch.
    next: Option<Box<Pending>>,
}

impl Task {
    async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let mut closing = Vec::new();
        loop {
            let first = match self.next.take() {
                Some(first) => first,
                None => match orders.recv().await {
                    Some(Order::Append(first)) => first,
                    Some(Order::Close(done)) => {
                        orders.close();
                        closing.push(done);
                        continue;
                    }
                    None => break,
                },
            };
            let batch = self.gather(first, &mut orders, &mut closing);
            self.write(batch).await;
        }
        drop(self);
        for done in closing {
            let _ = done.send(());
        }
    }

    /// Takes all that waits, up to the limits of a statement.
    fn gather(
        &mut self,
        first: Box<Pending>,
        orders: &mut mpsc::Receiver<Order>,
        closing: &mut Vec<oneshot::Sender<()>>,
    ) -> Vec<Pending> {
        let (mut distinct, mut batch) = (Distinct::default(), Vec::new());
        let (mut events, mut bytes) = (0, 0);
        let mut next = Some(first);
        while let Some(pending) = next.take() {
            if !distinct.admit(&pending.append) {
                self.next = Some(pending);
                break;
            }
            events += pending.append.events.len().max(1);
            bytes += pending.append.bytes();
            batch.push(*pending);
            while next.is_none() && events < BATCH_EVENTS && bytes < BATCH_BYTES {
                match orders.try_recv() {
                    Ok(Order::Append(pending)) => next = Some(pending),
                    Ok(Order::Close(done)) => {
                        orders.close();
                        closing.push(done);
                    }
                    Err(_) => break,
                }
            }
        }
        batch
    }

    async fn write(&mut self, batch: Vec<Pending>) {
        if self.shared.fatal.borrow().is_some() {
            let why = || Err(stopped(&self.shared));
            return batch.into_iter().for_each(|pending| answer(pending, why()));
        }
        // A transaction may need the connection of an append whose caller gave up long ago.
        let (batch, late): (Vec<_>, Vec<_>) = self.connected(batch).await;
        late.into_iter().for_each(|pending| {
            answer(pending, Err(StoreError::Busy("the database cannot be reached")));
        });
        if batch.is_empty() {
            return;
        }
        match self.transact(&batch).await {
            Ok(outcomes) => {
                for (pending, outcome) in batch.into_iter().zip(outcomes) {
                    answer(pending, outcome);
                }
            }
            // A bad append must not fail the others: each gets its own statement (I6).
            Err(Failure::Refused(_) | Failure::Full) if batch.len() > 1 => {
                for pending in batch {
                    let done = self.transact(std::slice::from_ref(&pending)).await;
                    let outcome = match done {
                        Ok(mut outcomes) => outcomes.pop().unwrap_or(Err(StoreError::Unknown)),
                        Err(failure) => Err(self.failed(failure)),
                    };
                    answer(pending, outcome);
                }
            }
            Err(failure) => {
                let error = self.failed(failure);
                for pending in batch {
                    answer(pending, Err(same(&error)));
                }
            }
        }
    }

    /// Waits for a connection. Separates the appends that may be written from those whose deadline has passed.
    async fn connected(&mut self, mut batch: Vec<Pending>) -> (Vec<Pending>, Vec<Pending>) {
        let mut late = Vec::new();
        while self
            .connection
            .as_ref()
            .is_none_or(|(client, _)| client.is_closed())
            && !batch.is_empty()
        {
            match self.connect().await {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => {
                    tracing::warn!(%error, "cannot reach the database; trying again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
            let now = Instant::now();
            let (open, over): (Vec<_>, Vec<_>) =
                batch.into_iter().partition(|pending| pending.deadline > now);
            batch = open;
            late.extend(over);
        }
        (batch, late)
    }

    async fn connect(&self) -> Result<(Client, Statement), StoreError> {
        let client = self.shared.server.connect().await?;
        let prepared = client.prepare(SQL).await;
        let statement = prepared.map_err(|error| crate::error::store_error(&error))?;
        Ok((client, statement))
    }

    async fn transact(&mut self, batch: &[Pending]) -> Result<Vec<Result<Outcome, StoreError>>, Failure> {
        let Some((client, statement)) = &self.connection else {
            return Err(Failure::Lost("there is no connection".to_owned()));
        };
        if let Err(injected) = fault::point(fault::IN_BATCH) {
            self.shared.fatal.send_replace(Some(injected.to_string()));
            let stopped = batch.iter().map(|_| Err(stopped(&self.shared)));
            return Ok(stopped.collect());
        }
        let begun = Instant::now();
        let appends = || batch.iter().map(|pending| &pending.append);
        let now = self.shared.clock.now();
        let encoded = Batch::of(appends(), now);
        let (now, oldest) = (column(now.0), column(now.0.saturating_sub(KEY_LIFE_MS)));
        let node = Some(self.shared.node.load(Ordering::Acquire)).filter(|node| *node != 0);
        let params = encoded.params([&now, &oldest, &node]);
        let run = timeout(ANSWER, client.query(statement, &params)).await;
        let rows = run
            .map_err(|_| Failure::Lost("no answer in time".to_owned()))?
            .map_err(|error| failure(&error))?;
        let written = outcomes(appends(), &rows).map_err(|error| failure(&error))?;
        self.shared.counters.batch(batch.len(), begun.elapsed());
        // Before anyone hears of the commit, so that it is not read.
        self.shared.own.committed(written.cursors);
        crate::listener::raise(&self.shared.committed, written.cursors.1);
        let unknown = fault::point(fault::AFTER_COMMIT).is_err();
        let answers = written.outcomes.into_iter().map(|outcome| {
            if unknown {
                Err(StoreError::Unknown)
            } else {
                Ok(outcome)
            }
        });
        Ok(answers.collect())
    }

    /// The answer to a single append; a lost connection is replaced by a new one.
    fn failed(&mut self, failure: Failure) -> StoreError {
        if let Failure::Lost(why) = failure {
            tracing::warn!(error = why, "lost the connection to the database");
            self.connection = None;
            return StoreError::Unknown;
        }
        failure.into()
    }
}

fn answer(pending: Pending, outcome: Result<Outcome, StoreError>) {
    // The caller may have stopped waiting; the append remains committed.
    let _ = pending.reply.send(outcome);
}

/// The same error for another append of the batch.
fn same(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unknown => StoreError::Unknown,
        StoreError::Full => StoreError::Full,
        StoreError::Busy(why) => StoreError::Busy(why),
        other => StoreError::Refused(other.to_string()),
    }
}
