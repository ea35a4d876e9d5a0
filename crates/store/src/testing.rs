//! Test backends for other crates.

use crate::{
    Access, Append, Backend, Charge, Claim, Filter, Fleet, Incarnation, Integrity, Outcome, Page, Placement,
    Range, Row, SessionLog, Spending, StoreError, StoredKey, StoredToken, Watched,
};
use agentd_protocol::{Labels, Principal, SessionId, Timestamp};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Wraps a backend, counts the calls, and fails on request.
#[derive(Debug)]
pub struct CountingLog {
    inner: Arc<dyn Backend>,
    appends: Mutex<BTreeMap<SessionId, u64>>,
    loads: Mutex<BTreeMap<SessionId, u64>>,
    lose: AtomicU64,
    damaged: Mutex<Vec<String>>,
    stalled: watch::Sender<Option<SessionId>>,
    fatal: watch::Sender<Option<String>>,
}

fn bump(counts: &Mutex<BTreeMap<SessionId, u64>>, session: SessionId) {
    *counts
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(session)
        .or_default() += 1;
}

fn read(counts: &Mutex<BTreeMap<SessionId, u64>>, session: SessionId) -> u64 {
    counts
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&session)
        .copied()
        .unwrap_or_default()
}

impl CountingLog {
    /// Wraps `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        let fatal = watch::channel(None).0;
        Self {
            inner,
            appends: Mutex::default(),
            loads: Mutex::default(),
            lose: AtomicU64::new(0),
            damaged: Mutex::default(),
            stalled: watch::channel(None).0,
            fatal,
        }
    }

    /// Makes the rows of these tokens unreadable, and the table with them.
    pub fn damage_tokens(&self, names: &[&str]) {
        *self.damaged() = names.iter().map(|name| (*name).to_owned()).collect();
    }

    fn damaged(&self) -> MutexGuard<'_, Vec<String>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits the next `n` appends, but loses their answers.
    pub fn lose_answers(&self, n: u64) {
        self.lose.store(n, Ordering::SeqCst);
    }

    /// Refuses every append from now on, as after an I/O error.
    pub fn break_down(&self, why: &str) {
        self.fatal.send_replace(Some(why.to_owned()));
    }

    /// Blocks reads of this session's log from now on; `None` releases all.
    pub fn stall(&self, session: Option<SessionId>) {
        self.stalled.send_replace(session);
    }

    /// The number of append calls for a session, including refused ones.
    #[must_use]
    pub fn appends(&self, session: SessionId) -> u64 {
        read(&self.appends, session)
    }

    /// The number of pages read from a session's log.
    #[must_use]
    pub fn loads(&self, session: SessionId) -> u64 {
        read(&self.loads, session)
    }
}

#[async_trait]
impl SessionLog for CountingLog {
    async fn append(&self, append: Append) -> Outcome {
        bump(&self.appends, append.session);
        if let Some(why) = self.fatal.borrow().clone() {
            return Outcome::Failed(why);
        }
        let outcome = self.inner.append(append).await;
        let lost = self
            .lose
            .try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if lost.is_ok() { Outcome::Unknown } else { outcome }
    }

    async fn load(&self, session: SessionId, range: Range) -> Result<Page, StoreError> {
        bump(&self.loads, session);
        let mut stalled = self.stalled.subscribe();
        let _ = stalled.wait_for(|which| *which != Some(session)).await;
        self.inner.load(session, range).await
    }

    async fn row(&self, session: SessionId) -> Result<Option<Row>, StoreError> {
        self.inner.row(session).await
    }

    async fn resolve(&self, text: &str, labels: &Labels) -> Result<Vec<(SessionId, String)>, StoreError> {
        self.inner.resolve(text, labels).await
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError> {
        self.inner.list(filter).await
    }

    async fn count(&self) -> Result<u64, StoreError> {
        self.inner.count().await
    }

    async fn states(&self, of: Option<Vec<SessionId>>) -> Result<BTreeMap<String, u64>, StoreError> {
        self.inner.states(of).await
    }

    async fn key(&self, principal: &Principal, key: &str) -> Result<Option<StoredKey>, StoreError> {
        self.inner.key(principal, key).await
    }

    async fn blob(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        self.inner.blob(name).await
    }

    async fn put_blob(&self, session: SessionId, bytes: Bytes) -> Result<String, StoreError> {
        self.inner.put_blob(session, bytes).await
    }

    async fn share_blobs(&self, from: SessionId, to: SessionId) -> Result<(), StoreError> {
        self.inner.share_blobs(from, to).await
    }

    async fn watch(&self, after: Option<u64>, limit: u32) -> Result<Watched, StoreError> {
        self.inner.watch(after, limit).await
    }

    async fn charged(&self, account: &str) -> Result<Charge, StoreError> {
        self.inner.charged(account).await
    }

    async fn spent(&self) -> Result<Vec<Spending>, StoreError> {
        self.inner.spent().await
    }

    async fn delete(&self, session: SessionId) -> Result<bool, StoreError> {
        self.inner.delete(session).await
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.inner.purge(before).await
    }

    async fn check(&self) -> Result<Integrity, StoreError> {
        self.inner.check().await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.inner.close().await
    }

    fn committed(&self) -> watch::Receiver<u64> {
        self.inner.committed()
    }

    fn fatal(&self) -> watch::Receiver<Option<String>> {
        self.fatal.subscribe()
    }
}

#[async_trait]
impl Placement for CountingLog {
    async fn register_node(&self, name: &str, ttl: Duration) -> Result<Incarnation, StoreError> {
        self.inner.register_node(name, ttl).await
    }

    async fn renew(&self, node: Incarnation, ttl: Duration) -> Result<(), StoreError> {
        self.inner.renew(node, ttl).await
    }

    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError> {
        self.inner.claim(session).await
    }

    async fn claim_without_files(&self, session: SessionId) -> Result<Claim, StoreError> {
        self.inner.claim_without_files(session).await
    }

    async fn release(&self, session: SessionId, epoch: u64) -> Result<(), StoreError> {
        self.inner.release(session, epoch).await
    }

    fn fleet(&self) -> Option<Arc<dyn Fleet>> {
        self.inner.fleet()
    }
}

#[async_trait]
impl Access for CountingLog {
    async fn tokens(&self) -> Result<Vec<StoredToken>, StoreError> {
        let mut tokens = self.inner.tokens().await?;
        tokens.retain(|token| !self.damaged().contains(&token.name));
        Ok(tokens)
    }

    async fn add_token(&self, token: StoredToken, forget: Timestamp) -> Result<bool, StoreError> {
        self.inner.add_token(token, forget).await
    }

    async fn damaged_tokens(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.damaged().clone())
    }

    async fn revoke_token(&self, name: &str, at: Timestamp) -> Result<bool, StoreError> {
        let known = self.damaged().len();
        self.damaged().retain(|damaged| damaged != name);
        let removed = self.damaged().len() < known;
        Ok(self.inner.revoke_token(name, at).await? || removed)
    }

    async fn settle_token_rights(&self) -> Result<Vec<String>, StoreError> {
        if !self.damaged().is_empty() {
            return Err(StoreError::Damaged("the table token".to_owned()));
        }
        self.inner.settle_token_rights().await
    }

    async fn token_used(&self, name: &str, at: Timestamp) -> Result<(), StoreError> {
        self.inner.token_used(name, at).await
    }

    async fn blob_within(&self, name: &str, labels: &Labels) -> Result<bool, StoreError> {
        self.inner.blob_within(name, labels).await
    }
}
