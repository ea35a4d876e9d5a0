//! The `memory:` backend: nothing outlives the process. It keeps the traits independent of any database, and it is here
//! because it needs no more than they do: tests of the crates above get a store without linking one.

mod lists;
mod state;

use crate::{
    Access, Append, Blob, Charge, Claim, Clock, Filter, Incarnation, Integrity, Outcome, Page, Placement,
    Range, Row, SessionLog, Spending, StoreError, StoredKey, StoredToken, Watched,
};
use agentd_fault_points as fault;
use agentd_protocol::{Labels, Principal, SessionId, Timestamp, TokenRights};
use async_trait::async_trait;
use bytes::Bytes;
use state::State;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// A store in memory. The default one uses the system's clock.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    clock: Clock,
    committed: watch::Sender<u64>,
    fatal: watch::Sender<Option<String>>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            ..Self::default()
        }
    }

    fn open(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            Err(StoreError::Stopped("it was closed".to_owned()))
        } else {
            Ok(state)
        }
    }

    fn expiry(&self, ttl: Duration) -> Timestamp {
        self.clock
            .now()
            .plus_ms(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
    }
}

#[async_trait]
impl SessionLog for MemoryStore {
    async fn append(&self, append: Append) -> Outcome {
        if let Some(refusal) = append.malformed() {
            return refusal;
        }
        if let Err(injected) = fault::point(fault::BEFORE_APPEND) {
            return Outcome::Failed(injected.to_string());
        }
        let now = self.clock.now();
        match self.open() {
            Ok(mut state) => {
                let outcome = state.append(append, now);
                // Under the lock, so that the cursor never moves backwards.
                self.committed.send_replace(state.cursor());
                outcome
            }
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    async fn load(&self, session: SessionId, range: Range) -> Result<Page, StoreError> {
        self.open()?.load(session, range)
    }

    async fn row(&self, session: SessionId) -> Result<Option<Row>, StoreError> {
        Ok(self.open()?.row(session))
    }

    async fn resolve(&self, text: &str, labels: &Labels) -> Result<Vec<(SessionId, String)>, StoreError> {
        Ok(self.open()?.resolve(text, labels))
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError> {
        self.open()?.list(&filter)
    }

    async fn count(&self) -> Result<u64, StoreError> {
        Ok(self.open()?.count())
    }

    async fn states(&self, of: Option<Vec<SessionId>>) -> Result<BTreeMap<String, u64>, StoreError> {
        Ok(self.open()?.states(of.as_deref()))
    }

    async fn key(&self, principal: &Principal, key: &str) -> Result<Option<StoredKey>, StoreError> {
        let now = self.clock.now();
        Ok(self.open()?.key(principal, key, now))
    }

    async fn blob(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.open()?.blobs.get(name).cloned())
    }

    async fn put_blob(&self, session: SessionId, bytes: Bytes) -> Result<String, StoreError> {
        let blob = Blob::new(bytes);
        let name = blob.name().to_owned();
        self.open()?.put_blob(session, &blob)?;
        Ok(name)
    }

    async fn share_blobs(&self, from: SessionId, to: SessionId) -> Result<(), StoreError> {
        self.open()?.share_blobs(from, to)
    }

    async fn watch(&self, after: Option<u64>, limit: u32) -> Result<Watched, StoreError> {
        Ok(self.open()?.watch(after, limit))
    }

    async fn charged(&self, account: &str) -> Result<Charge, StoreError> {
        Ok(self.open()?.charged(account))
    }

    async fn spent(&self) -> Result<Vec<Spending>, StoreError> {
        Ok(self.open()?.spent.clone())
    }

    async fn delete(&self, session: SessionId) -> Result<bool, StoreError> {
        let now = self.clock.now();
        Ok(self.open()?.delete(session, now))
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        let now = self.clock.now();
        Ok(self.open()?.purge(before, now))
    }

    async fn check(&self) -> Result<Integrity, StoreError> {
        let state = self.open()?;
        let (sessions, events, bytes) = (state.count(), state.events(), state.bytes());
        Ok(Integrity {
            warnings: Vec::new(),
            problems: Vec::new(),
            sessions,
            events,
            bytes,
        })
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        Ok(())
    }

    fn committed(&self) -> watch::Receiver<u64> {
        self.committed.subscribe()
    }

    fn fatal(&self) -> watch::Receiver<Option<String>> {
        self.fatal.subscribe()
    }
}

#[async_trait]
impl Placement for MemoryStore {
    async fn register_node(&self, _name: &str, ttl: Duration) -> Result<Incarnation, StoreError> {
        let expires = self.expiry(ttl);
        let mut state = self.open()?;
        state.node += 1;
        state.node_expires = expires;
        Ok(Incarnation(state.node))
    }

    async fn renew(&self, node: Incarnation, ttl: Duration) -> Result<(), StoreError> {
        let (now, expires) = (self.clock.now(), self.expiry(ttl));
        let mut state = self.open()?;
        if state.node != node.0 || state.node_expires < now {
            return Err(StoreError::NodeLost);
        }
        state.node_expires = expires;
        Ok(())
    }

    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError> {
        self.open()?.claim(session)
    }

    async fn release(&self, _session: SessionId, _epoch: u64) -> Result<(), StoreError> {
        self.open().map(|_| ())
    }
}

#[async_trait]
impl Access for MemoryStore {
    async fn tokens(&self) -> Result<Vec<StoredToken>, StoreError> {
        Ok(self.open()?.tokens.values().cloned().collect())
    }

    async fn add_token(&self, token: StoredToken, forget: Timestamp) -> Result<bool, StoreError> {
        Ok(self.open()?.add_token(token, forget))
    }

    async fn damaged_tokens(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    async fn revoke_token(&self, name: &str, at: Timestamp) -> Result<bool, StoreError> {
        let mut state = self.open()?;
        let live = state.tokens.get_mut(name);
        let live = live.filter(|token| token.revoked.is_none());
        Ok(live.map(|token| token.revoked = Some(at)).is_some())
    }

    async fn settle_token_rights(&self) -> Result<Vec<String>, StoreError> {
        let mut state = self.open()?;
        let without = state.tokens.values_mut().filter(|token| token.rights.is_none());
        let settled = without.map(|token| {
            token.rights = Some(TokenRights::default());
            token.name.clone()
        });
        Ok(settled.collect())
    }

    async fn token_used(&self, name: &str, at: Timestamp) -> Result<(), StoreError> {
        if let Some(token) = self.open()?.tokens.get_mut(name) {
            token.used = token.used.max(Some(at));
        }
        Ok(())
    }

    async fn blob_within(&self, name: &str, labels: &Labels) -> Result<bool, StoreError> {
        Ok(self.open()?.blob_within(name, labels))
    }
}
