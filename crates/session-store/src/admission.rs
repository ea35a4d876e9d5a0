//! Admission to the backend: each request runs in its own task, so the actor never waits, and the number of tasks is
//! limited. A task outlives the actor, so an admitted request is answered even while the actor restarts.

use agentd_actor_core::{Done, FeedMsg, Handle, Load, Published, Read};
use agentd_protocol::SessionId;
use agentd_store::{Append, Backend, Claim, EncodedEvent, Outcome, StoreError};
use bytes::Bytes;
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How often an append is retried after a lost answer before its caller learns of the loss.
const REPEATS: u32 = 2;

/// The limits of concurrent work. Requests beyond them are refused, not queued.
#[derive(Debug, Clone, Copy)]
pub struct StoreLimits {
    /// Appends and other changes. A session has at most one at a time.
    pub changes: usize,
    /// Reads.
    pub reads: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            changes: 16_384,
            reads: 4_096,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Admission {
    backend: Arc<dyn Backend>,
    feed: Handle<FeedMsg>,
    changes: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    limits: StoreLimits,
}

impl Admission {
    pub(crate) fn new(backend: Arc<dyn Backend>, feed: Handle<FeedMsg>, limits: StoreLimits) -> Self {
        let (changes, reads) = (Semaphore::new(limits.changes), Semaphore::new(limits.reads));
        Self {
            backend,
            feed,
            changes: Arc::new(changes),
            reads: Arc::new(reads),
            limits,
        }
    }

    /// Reads and changes in progress. None waits: requests beyond the limits are refused.
    pub(crate) fn load(&self) -> Load {
        let free = self.changes.available_permits() + self.reads.available_permits();
        let all = self.limits.changes + self.limits.reads;
        Load {
            running: all.saturating_sub(free) as u64,
            waiting: 0,
        }
    }

    pub(crate) fn append(&self, append: Append, done: Done<Outcome>) {
        let Some(permit) = admit(&self.changes) else {
            // The owner waits a moment and retries the append, as it does when the disk is full.
            return done.answer(Outcome::Full);
        };
        let (backend, feed) = (Arc::clone(&self.backend), self.feed.clone());
        tokio::spawn(async move {
            let (session, events) = (append.session, append.events.clone());
            let (outcome, cursor) = settle(&*backend, append).await;
            if let Some(cursor) = cursor {
                publish(&feed, session, events, cursor);
            } else if outcome == Outcome::Unknown {
                feed.cast(FeedMsg::Unsure { session });
            }
            drop(permit);
            // Announce the commit first: otherwise the owner's next commit could reach the viewers before this one.
            done.answer(outcome);
        });
    }

    pub(crate) fn claim(
        &self,
        session: SessionId,
        without_files: bool,
        done: Done<Result<Claim, StoreError>>,
    ) {
        self.change(done, move |backend| async move {
            match without_files {
                true => backend.claim_without_files(session).await,
                false => backend.claim(session).await,
            }
        });
    }

    pub(crate) fn put_blob(&self, session: SessionId, bytes: Bytes, done: Done<Result<String, StoreError>>) {
        self.change(done, move |backend| async move {
            backend.put_blob(session, bytes).await
        });
    }

    pub(crate) fn delete(&self, session: SessionId, done: Done<Result<(), StoreError>>) {
        self.change(done, move |backend| async move {
            if backend.delete(session).await? {
                Ok(())
            } else {
                Err(StoreError::NotFound(session))
            }
        });
    }

    fn change<T, F>(&self, done: Done<Result<T, StoreError>>, run: impl FnOnce(Arc<dyn Backend>) -> F)
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let Some(permit) = admit(&self.changes) else {
            return done.answer(Err(StoreError::Busy("too many changes at once")));
        };
        let work = run(Arc::clone(&self.backend));
        tokio::spawn(async move {
            let result = work.await;
            drop(permit);
            done.answer(result);
        });
    }

    pub(crate) fn read(&self, read: Read) {
        let Some(permit) = admit(&self.reads) else {
            return refuse(read);
        };
        let backend = Arc::clone(&self.backend);
        tokio::spawn(async move {
            run(&*backend, read).await;
            drop(permit);
        });
    }
}

fn admit(semaphore: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(semaphore).try_acquire_owned().ok()
}

/// Appends, and retries after a lost answer with the same append id, so that nothing is written twice. Returns a cursor
/// if the events are durable but not announced; it is 0 if their position is unknown.
async fn settle(backend: &dyn Backend, append: Append) -> (Outcome, Option<u64>) {
    let mut outcome = attempt(backend, append.clone()).await;
    for _ in 0..REPEATS {
        if outcome != Outcome::Unknown {
            break;
        }
        outcome = match attempt(backend, append.clone()).await {
            Outcome::Duplicate { head } => return (Outcome::Duplicate { head }, Some(0)),
            // A refusal of a retry does not tell whether the first attempt was committed.
            Outcome::Failed(_) | Outcome::Full => Outcome::Unknown,
            settled => settled,
        };
    }
    let cursor = if let Outcome::Committed { cursor, .. } = &outcome {
        Some(*cursor)
    } else {
        None
    };
    (outcome, cursor)
}

/// One attempt. A panic may occur before or after the commit, so it counts as a lost answer. Without an announcement,
/// the viewers would never learn of a commit.
async fn attempt(backend: &dyn Backend, append: Append) -> Outcome {
    let session = append.session;
    let tried = AssertUnwindSafe(backend.append(append)).catch_unwind().await;
    tried.unwrap_or_else(|_| {
        tracing::error!(%session, "an append panicked; checking whether it was stored");
        Outcome::Unknown
    })
}

fn publish(feed: &Handle<FeedMsg>, session: SessionId, events: Vec<EncodedEvent>, cursor: u64) {
    if !events.is_empty() {
        feed.cast(FeedMsg::Committed(vec![Published {
            session,
            cursor,
            events,
        }]));
    }
}

async fn run(backend: &dyn Backend, read: Read) {
    match read {
        Read::Load { session, range, done } => done.answer(backend.load(session, range).await),
        Read::Row { session, done } => done.answer(backend.row(session).await),
        Read::List { filter, done } => done.answer(backend.list(filter).await),
        Read::Resolve { word, labels, done } => done.answer(backend.resolve(&word, &labels).await),
        Read::Count { done } => done.answer(backend.count().await),
        Read::States { of, done } => done.answer(backend.states(of).await),
        Read::Key { principal, key, done } => done.answer(backend.key(&principal, &key).await),
        Read::Blob { name, done } => done.answer(backend.blob(&name).await),
        Read::Watch { after, limit, done } => done.answer(backend.watch(after, limit).await),
    }
}

fn refuse(read: Read) {
    let busy = || StoreError::Busy("too many reads at once");
    match read {
        Read::Load { done, .. } => done.answer(Err(busy())),
        Read::Row { done, .. } => done.answer(Err(busy())),
        Read::List { done, .. } => done.answer(Err(busy())),
        Read::Resolve { done, .. } => done.answer(Err(busy())),
        Read::Count { done } => done.answer(Err(busy())),
        Read::States { done, .. } => done.answer(Err(busy())),
        Read::Key { done, .. } => done.answer(Err(busy())),
        Read::Blob { done, .. } => done.answer(Err(busy())),
        Read::Watch { done, .. } => done.answer(Err(busy())),
    }
}
