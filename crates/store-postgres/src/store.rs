//! The backend: each method of the log on its connection.

use crate::fleet::Membership;
use crate::listener::Listener;
use crate::reads::Reads;
use crate::server::Server;
use crate::writer::{Shared, Writer};
use crate::{blobs, list, queries, spending, upkeep};
use agentd_fault_points as fault;
use agentd_protocol::{Labels, Principal, SessionId, Timestamp};
use agentd_store::backend::{ROW_LIMIT, is_name};
use agentd_store::parts::Parts;
use agentd_store::{
    Append, Blob, Charge, Copied, Filter, Fleet as _, Integrity, Outcome, Page, Range, Row, SessionLog,
    Spending, StoreError, StoreMetrics, StoredKey, Watched,
};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio_postgres::Client;

/// An empty set of cursors.
const NOTHING: &str = "{}";

/// A store in a PostgreSQL database.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    shared: Shared,
    writer: Writer,
    pub(crate) reads: Reads,
    /// For pages of events.
    pages: Reads,
    /// This node's current registration; 0: none yet.
    pub(crate) node: Arc<AtomicI64>,
    pub(crate) fleet: Arc<Membership>,
    listener: Mutex<Option<Listener>>,
}

impl PostgresStore {
    pub(crate) fn new(
        shared: Shared,
        writer: Writer,
        (reads, pages): (Reads, Reads),
        (fleet, listener): (Membership, Listener),
    ) -> Self {
        Self {
            node: Arc::clone(&shared.node),
            shared,
            writer,
            reads,
            pages,
            fleet: Arc::new(fleet),
            listener: Mutex::new(Some(listener)),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// The database, for people.
    pub(crate) const fn server(&self) -> &Server {
        &self.shared.server
    }

    /// A connection of its own.
    pub(crate) async fn connect(&self) -> Result<Client, StoreError> {
        self.shared.server.connect().await
    }

    /// The current incarnation of this node, if it has joined.
    pub(crate) fn owner(&self) -> Option<i64> {
        Some(self.node.load(Ordering::Acquire)).filter(|node| *node != 0)
    }

    async fn try_append(&self, append: Append) -> Result<Outcome, StoreError> {
        if let Some(refusal) = append.malformed() {
            return Ok(refusal);
        }
        let refused = |injected: fault::Injected| StoreError::Refused(injected.to_string());
        fault::point(fault::BEFORE_APPEND).map_err(refused)?;
        let kinds = fault::Kinds::of(append.events.iter().map(|event| event.kind.as_ref()));
        fault::fact(fault::FACT_BEFORE, &kinds).map_err(refused)?;
        let large: Vec<Blob> = append
            .blobs
            .iter()
            .filter(|blob| blob.bytes().len() > ROW_LIMIT)
            .cloned()
            .collect();
        if !large.is_empty() {
            let now = self.now();
            let put = self
                .reads
                .run(move |client| async move { blobs::put(&client, &large, now).await });
            put.await?;
        }
        let outcome = self.writer.append(append).await?;
        fault::fact(fault::FACT_AFTER, &kinds).map_err(|_| StoreError::Unknown)?;
        Ok(outcome)
    }
}

#[async_trait]
impl SessionLog for PostgresStore {
    async fn append(&self, append: Append) -> Outcome {
        self.try_append(append).await.into()
    }

    async fn load(&self, session: SessionId, range: Range) -> Result<Page, StoreError> {
        self.pages
            .run(move |client| queries::load(client, session, range))
            .await
    }

    async fn row(&self, session: SessionId) -> Result<Option<Row>, StoreError> {
        self.reads.run(move |client| queries::row(client, session)).await
    }

    async fn resolve(&self, text: &str, labels: &Labels) -> Result<Vec<(SessionId, String)>, StoreError> {
        let (text, labels) = (text.to_owned(), serde_json::to_string(labels)?);
        self.reads
            .run(move |client| queries::resolve(client, text, labels))
            .await
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError> {
        let node = self.owner();
        self.reads
            .run(move |client| list::list(client, filter, node))
            .await
    }

    async fn count(&self) -> Result<u64, StoreError> {
        self.reads.run(queries::count).await
    }

    async fn states(&self, of: Option<Vec<SessionId>>) -> Result<BTreeMap<String, u64>, StoreError> {
        self.reads.run(move |client| queries::states(client, of)).await
    }

    async fn key(&self, principal: &Principal, key: &str) -> Result<Option<StoredKey>, StoreError> {
        let (principal, key, now) = (principal.clone(), key.to_owned(), self.now());
        self.reads
            .run(move |client| queries::key(client, principal, key, now))
            .await
    }

    async fn blob(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        if !is_name(name) {
            return Ok(None);
        }
        let name = name.to_owned();
        self.reads.run(move |client| blobs::read(client, name)).await
    }

    async fn put_blob(&self, session: SessionId, bytes: Bytes) -> Result<String, StoreError> {
        let (blob, now) = (Blob::new(bytes), self.now());
        let name = blob.name().to_owned();
        self.reads
            .run(move |client| blobs::keep(client, session, blob, now))
            .await?;
        Ok(name)
    }

    async fn share_blobs(&self, from: SessionId, to: SessionId) -> Result<(), StoreError> {
        self.reads.run(move |client| blobs::share(client, from, to)).await
    }

    async fn watch(&self, after: Option<u64>, limit: u32) -> Result<Watched, StoreError> {
        self.pages
            .run(move |client| queries::watch(client, after, NOTHING.to_owned(), limit))
            .await
    }

    async fn watch_others(&self, after: u64, limit: u32) -> Result<Watched, StoreError> {
        let (at, own) = self.shared.own.beyond(after);
        if at > after && at >= *self.shared.committed.borrow() {
            return Ok(Watched {
                events: Vec::new(),
                cursor: at,
            });
        }
        self.pages
            .run(move |client| queries::watch(client, Some(at), own, limit))
            .await
    }

    async fn charged(&self, account: &str) -> Result<Charge, StoreError> {
        let account = account.to_owned();
        self.reads
            .run(move |client| queries::charged(client, account))
            .await
    }

    async fn spent(&self) -> Result<Vec<Spending>, StoreError> {
        self.reads.run(spending::read).await
    }

    async fn delete(&self, session: SessionId) -> Result<bool, StoreError> {
        let now = self.now();
        self.reads
            .run(move |client| spending::delete(client, session, now))
            .await
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        let now = self.now();
        self.reads
            .run(move |client| upkeep::purge(client, before, now))
            .await
    }

    async fn check(&self) -> Result<Integrity, StoreError> {
        self.reads.run(upkeep::check).await
    }

    async fn copy_into(&self, _: &Path) -> Result<Copied, StoreError> {
        Err(StoreError::Refused(
            "agentd does not copy a PostgreSQL database; use pg_dump, or the backups of the server"
                .to_owned(),
        ))
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.writer.close().await?;
        // Only now may others take over: nothing is on the way any more.
        if let Err(error) = self.fleet.leave().await {
            tracing::warn!(%error, "could not leave the fleet; others take over when the lease has ended");
        }
        drop(
            self.listener
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        self.reads.close();
        self.pages.close();
        Ok(())
    }

    fn parts(&self) -> Option<&dyn Parts> {
        Some(self)
    }

    fn metrics(&self) -> StoreMetrics {
        self.shared.counters.read()
    }

    fn committed(&self) -> watch::Receiver<u64> {
        self.shared.committed.subscribe()
    }

    fn fatal(&self) -> watch::Receiver<Option<String>> {
        self.shared.fatal.subscribe()
    }
}
