//! Ownership: the fencing number of a session rises with every claim.

use crate::queries::{ROW, change, count_of, first, get, list_row};
use crate::store::PostgresStore;
use agentd_protocol::SessionId;
use agentd_store::backend::{column, hex};
use agentd_store::{Claim, Fleet, Incarnation, Joining, Placement, StoreError};
use async_trait::async_trait;
use deadpool_postgres::Object;
use std::sync::Arc;
use std::time::Duration;

/// The outcomes of the function `claim_1`.
const CLAIMED: i32 = 0;
const NOT_FOUND: i32 = 1;
const NOT_A_MEMBER: i32 = 2;

#[async_trait]
impl Placement for PostgresStore {
    async fn register_node(&self, name: &str, ttl: Duration) -> Result<Incarnation, StoreError> {
        let joining = Joining {
            name: name.to_owned(),
            identity: name.to_owned(),
            ttl,
            ..Joining::default()
        };
        self.fleet.join(&joining).await
    }

    async fn renew(&self, node: Incarnation, ttl: Duration) -> Result<(), StoreError> {
        let current = self.owner() == Some(column(node.0));
        if !current {
            return Err(StoreError::NodeLost);
        }
        self.fleet.beat(ttl).await.map(drop)
    }

    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError> {
        let node = self.owner();
        self.reads.run(move |client| claim(client, session, node)).await
    }

    async fn release(&self, session: SessionId, epoch: u64) -> Result<(), StoreError> {
        let release = self.reads.run(move |client| async move {
            let sql = "UPDATE session SET owner = NULL WHERE uid = $1 AND epoch = $2";
            change(&client, sql, &[&hex(session), &column(epoch)]).await
        });
        release.await.map(drop)
    }

    fn fleet(&self) -> Option<Arc<dyn Fleet>> {
        Some(Arc::<crate::fleet::Membership>::clone(&self.fleet))
    }
}

async fn claim(client: Object, session: SessionId, node: Option<i64>) -> Result<Claim, StoreError> {
    let uid = hex(session);
    let sql = "SELECT outcome, holder, moved, new_epoch, at_head FROM claim_1($1, $2)";
    let claimed = first(&client, sql, &[&uid, &node]).await?;
    let claimed = claimed.ok_or(StoreError::NodeLost)?;
    let holder: String = get(&claimed, 1)?;
    match get::<i32>(&claimed, 0)? {
        CLAIMED => {}
        NOT_FOUND => return Err(StoreError::NotFound(session)),
        NOT_A_MEMBER => return Err(StoreError::NodeLost),
        _ => {
            return Err(StoreError::Elsewhere {
                session,
                node: holder,
            });
        }
    }
    let moved: bool = get(&claimed, 2)?;
    let sql = format!("SELECT {ROW} FROM session WHERE uid = $1 AND deleted_ms IS NULL");
    let row = first(&client, &sql, &[&uid]).await?;
    let row = row.ok_or(StoreError::NotFound(session))?;
    // A session that is being imported has no row yet.
    let imported = row
        .try_get::<_, Option<&str>>("summary")
        .is_ok_and(|row| row.is_none());
    Ok(Claim {
        epoch: count_of(&claimed, 3)?,
        head: count_of(&claimed, 4)?,
        row_damaged: !imported && list_row(&row)?.damaged,
        moved_to: moved.then_some(holder),
    })
}
