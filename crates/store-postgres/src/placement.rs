//! Ownership: the fencing number of a session rises with every claim.

use crate::queries::{ROW, change, count_of, first, list_row};
use crate::store::PostgresStore;
use agentd_protocol::SessionId;
use agentd_store::backend::{column, hex};
use agentd_store::{Claim, Incarnation, Placement, StoreError};
use async_trait::async_trait;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl PostgresStore {
    fn later(&self, ttl: Duration) -> i64 {
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        column(self.now().plus_ms(ttl).0)
    }
}

#[async_trait]
impl Placement for PostgresStore {
    async fn register_node(&self, name: &str, ttl: Duration) -> Result<Incarnation, StoreError> {
        let (name, expires) = (name.to_owned(), self.later(ttl));
        let register = self.reads.run(move |client| async move {
            // The lock of the guard guarantees that every earlier incarnation has ended.
            let sql = "WITH old AS (DELETE FROM node) INSERT INTO node(name, expires_ms) VALUES ($1, $2) RETURNING id";
            let row = first(&client, sql, &[&name, &expires]).await?;
            row.map_or(Err(StoreError::NodeLost), |row| count_of(&row, 0))
        });
        let id = register.await?;
        self.node.store(column(id), Ordering::Release);
        Ok(Incarnation(id))
    }

    async fn renew(&self, node: Incarnation, ttl: Duration) -> Result<(), StoreError> {
        let (now, expires) = (column(self.now().0), self.later(ttl));
        let renew = self.reads.run(move |client| async move {
            let sql = "UPDATE node SET expires_ms = $2 WHERE id = $1 AND expires_ms >= $3";
            change(&client, sql, &[&column(node.0), &expires, &now]).await
        });
        match renew.await? {
            0 => Err(StoreError::NodeLost),
            _ => Ok(()),
        }
    }

    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError> {
        let node = Some(self.node.load(Ordering::Acquire)).filter(|node| *node != 0);
        let claim = self.reads.run(move |client| async move {
            let sql = format!(
                "UPDATE session SET epoch = epoch + 1, owner = $2 WHERE uid = $1 AND deleted_ms IS NULL RETURNING {ROW}"
            );
            let row = first(&client, &sql, &[&hex(session), &node]).await?;
            let Some(row) = row else {
                return Err(StoreError::NotFound(session));
            };
            // A session that is being imported has no row yet.
            let imported = row.try_get::<_, Option<&str>>("summary").is_ok_and(|row| row.is_none());
            Ok(Claim {
                epoch: count_of(&row, 1)?,
                head: count_of(&row, 2)?,
                row_damaged: !imported && list_row(&row)?.damaged,
            })
        });
        claim.await
    }

    async fn release(&self, session: SessionId, epoch: u64) -> Result<(), StoreError> {
        let release = self.reads.run(move |client| async move {
            let sql = "UPDATE session SET owner = NULL WHERE uid = $1 AND epoch = $2";
            change(&client, sql, &[&hex(session), &column(epoch)]).await
        });
        release.await.map(drop)
    }
}
