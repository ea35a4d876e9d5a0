//! Ownership: the fencing number of a session rises with every claim.

use crate::mend;
use crate::queries;
use crate::row_sum::{self, WHOLE};
use crate::store::{SMALL, SqliteStore};
use crate::values::{column, size, uid};
use agentd_protocol::{SessionId, Summary};
use agentd_store::cell_sum::SESSION_OWN;
use agentd_store::{Claim, Incarnation, Placement, StoreError};
use async_trait::async_trait;
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, params};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Whether a row's summary is readable; a session that is being imported has none yet.
fn is_summary(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Null => true,
        ValueRef::Text(json) => serde_json::from_slice::<Summary>(json).is_ok(),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => false,
    }
}

/// Takes a session over. `Some(None)`: it is set aside.
fn take(
    writer: &rusqlite::Connection,
    session: SessionId,
    owner: Option<i64>,
) -> rusqlite::Result<Option<Option<Claim>>> {
    let sum = row_sum::sum(&SESSION_OWN, &[("epoch", "session.epoch + 1")]);
    let (live, placed) = (&*row_sum::LIVE, &*row_sum::PLACED);
    let mut update = writer.prepare_cached(&format!(
        "UPDATE session SET epoch = epoch + 1, owner = ?2, own_sum = {sum}
         WHERE uid = ?1 AND deleted_ms IS NULL AND {placed} RETURNING epoch, head, {WHOLE}, summary"
    ))?;
    let claimed = update.query_row(params![uid(session), owner], |row| {
        Ok(Claim {
            epoch: size(row.get(0)?),
            head: size(row.get(1)?),
            row_damaged: !row.get::<_, bool>(2)? || !is_summary(row.get_ref(3)?),
            moved_to: None,
            away: None,
        })
    });
    match claimed.optional()? {
        Some(claim) => Ok(Some(Some(claim))),
        None => {
            let exists = format!("SELECT 1 FROM session WHERE uid = ?1 AND {live}");
            let exists = writer.prepare_cached(&exists)?.exists([uid(session)])?;
            Ok(exists.then_some(None))
        }
    }
}

fn later(now: agentd_protocol::Timestamp, ttl: Duration) -> i64 {
    column(now.plus_ms(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)).0)
}

#[async_trait]
impl Placement for SqliteStore {
    async fn register_node(&self, name: &str, ttl: Duration) -> Result<Incarnation, StoreError> {
        let (name, expires) = (name.to_owned(), later(self.clock.now(), ttl));
        let register = move |writer: &rusqlite::Connection| {
            // The store lock guarantees that every earlier incarnation has ended.
            writer.execute("DELETE FROM node", [])?;
            writer.execute(
                "INSERT INTO node(name, expires_ms) VALUES (?1, ?2)",
                params![name, expires],
            )?;
            Ok(writer.last_insert_rowid())
        };
        let id = self.writer.change(SMALL, register).await?;
        self.node.store(id, Ordering::Release);
        Ok(Incarnation(size(id)))
    }

    async fn renew(&self, node: Incarnation, ttl: Duration) -> Result<(), StoreError> {
        let now = self.clock.now();
        let renew = move |writer: &rusqlite::Connection| {
            let mut update = writer
                .prepare_cached("UPDATE node SET expires_ms = ?2 WHERE id = ?1 AND expires_ms >= ?3")?;
            update.execute(params![column(node.0), later(now, ttl), column(now.0)])
        };
        match self.writer.change(SMALL, renew).await? {
            0 => Err(StoreError::NodeLost),
            _ => Ok(()),
        }
    }

    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError> {
        let owner = self.owner();
        let claim = move |writer: &rusqlite::Connection| {
            let claimed = take(writer, session, owner)?;
            match claimed {
                Some(None) if mend::one(writer, session)? => take(writer, session, owner),
                claimed => Ok(claimed),
            }
        };
        self.readers
            .read(move |reader| queries::readable(reader, session))
            .await?;
        let claimed = self.writer.change(SMALL, claim).await?;
        let claimed = claimed.ok_or(StoreError::NotFound(session))?;
        claimed.ok_or(StoreError::Aside(session))
    }

    async fn release(&self, session: SessionId, epoch: u64) -> Result<(), StoreError> {
        let release = move |writer: &rusqlite::Connection| {
            let mut update =
                writer.prepare_cached("UPDATE session SET owner = NULL WHERE uid = ?1 AND epoch = ?2")?;
            update.execute(params![uid(session), column(epoch)])
        };
        self.writer.change(SMALL, release).await.map(|_| ())
    }
}
