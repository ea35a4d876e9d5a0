//! The two traits that every backend implements.

use crate::{
    Append, Charge, Filter, Integrity, Loss, Outcome, Page, Range, Row, Snapshot, Spending, StoreError,
    StoreMetrics, StoredKey, Watched,
};
use agentd_protocol::{Principal, SessionId, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;
use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;

/// The durable log of every session, and what is kept beside it.
#[async_trait]
pub trait SessionLog: Send + Sync + Debug {
    /// Writes all of it or nothing. Answers after it is durable. Has its own deadline.
    async fn append(&self, append: Append) -> Outcome;
    /// A page of a log.
    async fn load(&self, session: SessionId, range: Range) -> Result<Page, StoreError>;
    /// A session's list row; `None` when it is unknown, deleted, or has no summary. A row that cannot be read is
    /// [`StoreError::DamagedRow`].
    async fn row(&self, session: SessionId) -> Result<Option<Row>, StoreError>;
    /// The sessions meant by an id, a prefix of either end of one (dashes optional), or an exact name: newest first, at most 10.
    async fn resolve(&self, text: &str) -> Result<Vec<(SessionId, String)>, StoreError>;
    /// List rows, newest first. A row that cannot be read is among them as [`Row::damaged`], unless labels or states
    /// are asked for.
    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError>;
    /// How many sessions there are, closed ones included.
    async fn count(&self) -> Result<u64, StoreError>;
    /// A used idempotency key.
    async fn key(&self, principal: &Principal, key: &str) -> Result<Option<StoredKey>, StoreError>;
    /// The content of this name.
    async fn blob(&self, name: &str) -> Result<Option<Bytes>, StoreError>;
    /// Stores content outside an append; it lives as long as the session. Answers with its name.
    async fn put_blob(&self, session: SessionId, bytes: Bytes) -> Result<String, StoreError>;
    /// What `from` has stored lives as long as `to`, too: the log of `to` is a copy.
    async fn share_blobs(&self, from: SessionId, to: SessionId) -> Result<(), StoreError>;
    /// The cached state of a session.
    async fn snapshot(&self, session: SessionId) -> Result<Option<Snapshot>, StoreError>;
    /// Replaces the cached state of a session.
    async fn put_snapshot(&self, session: SessionId, snapshot: Snapshot) -> Result<(), StoreError>;
    /// The fleet-wide stream after a cursor; `None`: no events, only the present end. `limit` 0: the most.
    async fn watch(&self, after: Option<u64>, limit: u32) -> Result<Watched, StoreError>;
    /// What an account was charged so far.
    async fn charged(&self, account: &str) -> Result<Charge, StoreError>;
    /// What deleted sessions spent, summed up by model and labels.
    async fn spent(&self) -> Result<Vec<Spending>, StoreError>;
    /// Leaves a tombstone: it is gone for readers, and its owner is fenced off; what it spent stays with
    /// [`SessionLog::spent`]. Answers whether it was there.
    async fn delete(&self, session: SessionId) -> Result<bool, StoreError>;
    /// Removes what was deleted before this moment, and expired keys. Answers how many sessions are gone for good.
    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError>;
    /// Looks for damage. Reads everything.
    async fn check(&self) -> Result<Integrity, StoreError>;
    /// Puts a consistent copy into a directory, while others write: `agentd.db`, and `blobs` beside it.
    async fn copy_into(&self, _dir: &Path) -> Result<Copied, StoreError> {
        Err(StoreError::Refused(
            "a store in memory cannot be copied".to_owned(),
        ))
    }
    /// Writes what waits, then refuses everything.
    async fn close(&self) -> Result<(), StoreError>;
    /// The fleet-wide cursor of the last commit, as it moves.
    fn committed(&self) -> watch::Receiver<u64>;
    /// What was counted since it was opened; zeros where nothing is counted.
    fn metrics(&self) -> StoreMetrics {
        StoreMetrics::default()
    }
    /// Becomes `Some(reason)` when the store had to stop for good: the owner must end the process.
    fn fatal(&self) -> watch::Receiver<Option<String>>;
    /// What the store had lost when it was opened, and an operator accepted.
    fn losses(&self) -> &[Loss] {
        &[]
    }
}

/// What a copy of a store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// The fleet-wide cursor of its last event.
    pub cursor: u64,
    /// Its sessions, closed ones included.
    pub sessions: u64,
}

/// One registration of a node; a restarted node gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// Ownership of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The fencing number for appends from now on.
    pub epoch: u64,
    /// The log's head.
    pub head: agentd_protocol::Seq,
    /// The list row cannot be read; whoever folds the log writes it anew, with an append of no events.
    pub row_damaged: bool,
}

/// Who runs which session.
#[async_trait]
pub trait Placement: Send + Sync + Debug {
    /// Registers this node; sessions created or claimed from now on are its.
    async fn register_node(&self, name: &str, ttl: Duration) -> Result<Incarnation, StoreError>;
    /// Keeps the registration alive for another `ttl`; fails with `NodeLost` when it was replaced or ran out.
    async fn renew(&self, node: Incarnation, ttl: Duration) -> Result<(), StoreError>;
    /// Takes a session over: its fencing number rises, so appends of any earlier owner are refused.
    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError>;
    /// Gives a session up. Nothing happens when `epoch` is not the present one.
    async fn release(&self, session: SessionId, epoch: u64) -> Result<(), StoreError>;
}

/// A whole backend.
pub trait Backend: SessionLog + Placement {}

impl<T: SessionLog + Placement> Backend for T {}
