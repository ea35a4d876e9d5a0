//! The three traits that every backend implements.

use crate::parts::Parts;
use crate::{
    Append, Charge, Filter, Fleet, Integrity, Loss, Outcome, Page, Range, Row, Spending, StoreError,
    StoreMetrics, StoredKey, StoredToken, Watched,
};
use agentd_protocol::{Labels, Principal, SessionId, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The durable log of every session, and the data stored with it.
#[async_trait]
pub trait SessionLog: Send + Sync + Debug {
    /// Writes the whole append or nothing. Returns once it is durable. Has its own deadline.
    async fn append(&self, append: Append) -> Outcome;
    /// A page of a log.
    async fn load(&self, session: SessionId, range: Range) -> Result<Page, StoreError>;
    /// A session's list row; `None` if the session is unknown, deleted, or has no summary. An unreadable row is a
    /// [`StoreError::DamagedRow`].
    async fn row(&self, session: SessionId) -> Result<Option<Row>, StoreError>;
    /// Resolves an id, a prefix of either end of one (dashes optional), or an exact name, among the sessions that have
    /// all of these labels. Newest first, at most 10.
    async fn resolve(&self, text: &str, labels: &Labels) -> Result<Vec<(SessionId, String)>, StoreError>;
    /// List rows, newest first. Unreadable rows are included as [`Row::damaged`], unless the query filters by labels or
    /// states.
    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError>;
    /// The number of sessions, including closed ones.
    async fn count(&self) -> Result<u64, StoreError>;
    /// The numbers of sessions by their stored state, without closed ones: of all sessions, or of these. Unreadable rows
    /// count by the state that was stored with them.
    async fn states(&self, of: Option<Vec<SessionId>>) -> Result<BTreeMap<String, u64>, StoreError>;
    /// Looks up an idempotency key.
    async fn key(&self, principal: &Principal, key: &str) -> Result<Option<StoredKey>, StoreError>;
    /// The content of a blob.
    async fn blob(&self, name: &str) -> Result<Option<Bytes>, StoreError>;
    /// Stores content outside an append, for the lifetime of the session. Returns its name.
    async fn put_blob(&self, session: SessionId, bytes: Bytes) -> Result<String, StoreError>;
    /// Keeps the blobs of `from` for the lifetime of `to` as well, because the log of `to` is a copy.
    async fn share_blobs(&self, from: SessionId, to: SessionId) -> Result<(), StoreError>;
    /// The fleet-wide stream after a cursor. `None`: no events, only the current end. `limit` 0: the maximum.
    async fn watch(&self, after: Option<u64>, limit: u32) -> Result<Watched, StoreError>;
    /// The same for a reader that learns of the commits of this process elsewhere: they may be missing.
    async fn watch_others(&self, after: u64, limit: u32) -> Result<Watched, StoreError> {
        self.watch(Some(after), limit).await
    }
    /// The total charged to an account.
    async fn charged(&self, account: &str) -> Result<Charge, StoreError>;
    /// What deleted sessions spent, summed by model and labels.
    async fn spent(&self) -> Result<Vec<Spending>, StoreError>;
    /// Leaves a tombstone: readers no longer find the session, its owner is fenced off, and [`SessionLog::spent`] keeps
    /// what it spent. Returns whether the session existed.
    async fn delete(&self, session: SessionId) -> Result<bool, StoreError>;
    /// Purges sessions deleted before this time, and expired keys. Returns the number of purged sessions.
    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError>;
    /// Checks the whole store for damage. Reads everything.
    async fn check(&self) -> Result<Integrity, StoreError>;
    /// Writes a consistent copy into a directory, without blocking writers: `agentd.db`, and `blobs` next to it.
    async fn copy_into(&self, _dir: &Path) -> Result<Copied, StoreError> {
        Err(StoreError::Refused(
            "an in-memory store cannot be copied".to_owned(),
        ))
    }
    /// The store as tables, for a migration; `None`: it has none.
    fn parts(&self) -> Option<&dyn Parts> {
        None
    }
    /// Writes the queued changes, then refuses all requests.
    async fn close(&self) -> Result<(), StoreError>;
    /// Watches the fleet-wide cursor of the last commit.
    fn committed(&self) -> watch::Receiver<u64>;
    /// Counters since the store was opened; all 0 for a backend that does not count.
    fn metrics(&self) -> StoreMetrics {
        StoreMetrics::default()
    }
    /// Becomes `Some(reason)` when the store stops for good. The owner must then end the process.
    fn fatal(&self) -> watch::Receiver<Option<String>>;
    /// The losses that the store detected when it was opened, and that an operator accepted.
    fn losses(&self) -> &[Loss] {
        &[]
    }
}

/// The contents of a copy of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// The fleet-wide cursor of the copy's last event.
    pub cursor: u64,
    /// The number of sessions, including closed ones.
    pub sessions: u64,
}

/// One registration of a node. A restarted node gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// Ownership of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The fencing number for appends from now on.
    pub epoch: u64,
    /// The log's head.
    pub head: agentd_protocol::Seq,
    /// Whether the list row is unreadable. The owner that folds the log rewrites it with an append of no events.
    pub row_damaged: bool,
    /// The name of this node, if another one owned the session before.
    pub moved_to: Option<String>,
    /// Where its files are, if that is not here.
    pub away: Option<Away>,
}

/// Why a session may not run on a node: its files are on another one, or the node lacks labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Away {
    /// The node that may not run it; empty: none may.
    pub here: String,
    /// The node with its files.
    pub home: String,
    /// The working directory.
    pub workdir: String,
    /// The labels that the session requires, if the node lacks one of them.
    pub lacking: Labels,
}

/// Decides which node runs which session.
#[async_trait]
pub trait Placement: Send + Sync + Debug {
    /// Registers this node as the owner of the sessions that it creates or claims from now on.
    async fn register_node(&self, name: &str, ttl: Duration) -> Result<Incarnation, StoreError>;
    /// Extends the registration by another `ttl`. Fails with `NodeLost` if it was replaced or has expired.
    async fn renew(&self, node: Incarnation, ttl: Duration) -> Result<(), StoreError>;
    /// Takes over a session. Its fencing number rises, so appends of earlier owners are refused. In a fleet it fails with
    /// `Elsewhere` while another live node owns the session or a relative of it, and with `Away` if its files are not on
    /// this node.
    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError>;
    /// The same even if its files are not on this node, for what needs none of them or names others.
    async fn claim_without_files(&self, session: SessionId) -> Result<Claim, StoreError> {
        self.claim(session).await
    }
    /// Gives up a session. Does nothing if `epoch` is not current.
    async fn release(&self, session: SessionId, epoch: u64) -> Result<(), StoreError>;
    /// The membership in a fleet; `None`: only one node can use the store.
    fn fleet(&self) -> Option<Arc<dyn Fleet>> {
        None
    }
}

/// Tokens, and which labels may read a blob.
#[async_trait]
pub trait Access: Send + Sync + Debug {
    /// All tokens, by name. An unreadable one is left out, so that it opens nothing (I7).
    async fn tokens(&self) -> Result<Vec<StoredToken>, StoreError>;
    /// Adds a token, and forgets those that had ended before `forget`. Returns false, and adds nothing, if the name is
    /// taken or there are [`MAX_TOKENS`](crate::MAX_TOKENS).
    async fn add_token(&self, token: StoredToken, forget: Timestamp) -> Result<bool, StoreError>;
    /// The damaged tokens: by their names, or else as [`damaged_token`](crate::backend::damaged_token) says. They open nothing.
    async fn damaged_tokens(&self) -> Result<Vec<String>, StoreError>;
    /// Ends a token, or removes a damaged one. Returns false if there is no such token, or it was revoked before.
    async fn revoke_token(&self, name: &str, at: Timestamp) -> Result<bool, StoreError>;
    /// Gives every token without rights the default ones, and returns the names of these tokens.
    async fn settle_token_rights(&self) -> Result<Vec<String>, StoreError>;
    /// Records a use of a token.
    async fn token_used(&self, name: &str, at: Timestamp) -> Result<(), StoreError>;
    /// Whether a session with all of these labels keeps this blob.
    async fn blob_within(&self, name: &str, labels: &Labels) -> Result<bool, StoreError>;
}

/// A complete backend.
pub trait Backend: SessionLog + Placement + Access {}

impl<T: SessionLog + Placement + Access> Backend for T {}
