//! Ownership: the fencing number of a session rises with every claim.

use crate::mend;
use crate::queries::{ROW, change, first, list_row};
use crate::store::PostgresStore;
use agentd_protocol::{Labels, SessionId};
use agentd_store::backend::{column, hex, size};
use agentd_store::{Away, Claim, Fleet, Incarnation, Joining, Placement, StoreError};
use async_trait::async_trait;
use deadpool_postgres::Object;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};

/// The outcomes of the function `claim_2`.
const CLAIMED: i32 = 0;
const NOT_FOUND: i32 = 1;
const NOT_A_MEMBER: i32 = 2;
const AWAY: i32 = 4;

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
        if let Some(claim) = self.fleet.adopted.take(session) {
            return Ok(claim);
        }
        let node = self.owner();
        self.reads
            .run(move |client| claim(client, session, node, false))
            .await
    }

    async fn claim_without_files(&self, session: SessionId) -> Result<Claim, StoreError> {
        self.fleet.adopted.take(session);
        let node = self.owner();
        self.reads
            .run(move |client| claim(client, session, node, true))
            .await
    }

    async fn release(&self, session: SessionId, epoch: u64) -> Result<(), StoreError> {
        self.fleet.adopted.take(session);
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

async fn claim(
    client: Object,
    session: SessionId,
    node: Option<i64>,
    without_files: bool,
) -> Result<Claim, StoreError> {
    // The statement reads the row as it was before the claim, which changes none of the columns that count here.
    let sql = format!(
        "SELECT {ROW}, outcome, holder, moved, new_epoch, at_head, away, home, workdir, lacking
         FROM claim_2($1, $2, $3) LEFT JOIN session ON uid = $1 AND deleted_ms IS NULL"
    );
    let params: [&(dyn ToSql + Sync); 3] = [&hex(session), &node, &without_files];
    let claimed = first(&client, &sql, &params).await?;
    let mut claimed = claimed.ok_or(StoreError::NodeLost)?;
    if is_unplaced(&claimed)? && mend::one(&client, session).await? {
        claimed = first(&client, &sql, &params).await?.ok_or(StoreError::NodeLost)?;
    }
    let holder: String = named(&claimed, "holder")?;
    let (home, workdir, lacking) = (
        named(&claimed, "home")?,
        named(&claimed, "workdir")?,
        named(&claimed, "lacking")?,
    );
    let away = away(&holder, home, workdir, lacking);
    match named::<i32>(&claimed, "outcome")? {
        CLAIMED if is_unplaced(&claimed)? => return Err(StoreError::Aside(session)),
        CLAIMED => {}
        NOT_FOUND => return Err(StoreError::NotFound(session)),
        NOT_A_MEMBER => return Err(StoreError::NodeLost),
        AWAY => return Err(StoreError::Away { session, away }),
        _ => {
            return Err(StoreError::Elsewhere {
                session,
                node: holder,
            });
        }
    }
    // A session that is being imported has no row yet.
    let imported = named::<Option<&str>>(&claimed, "summary")?.is_none()
        && named::<Option<i64>>(&claimed, "row_sum")?.is_none()
        && named::<&str>(&claimed, "state")?.is_empty();
    Ok(Claim {
        epoch: size(named(&claimed, "new_epoch")?),
        head: size(named(&claimed, "at_head")?),
        row_damaged: !imported && list_row(&claimed)?.damaged,
        moved_to: named::<bool>(&claimed, "moved")?.then_some(holder),
        away: named::<bool>(&claimed, "away")?.then_some(away),
    })
}

/// Whether the database did not give the session, or did not find it, because its row is damaged.
fn is_unplaced(claimed: &Row) -> Result<bool, StoreError> {
    Ok(match named::<i32>(claimed, "outcome")? {
        CLAIMED => named::<Option<i64>>(claimed, "new_epoch")?.is_none(),
        outcome => outcome == NOT_FOUND,
    })
}

/// A value of a row, by the name of its column.
fn named<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T, StoreError> {
    row.try_get(column)
        .map_err(|error| crate::error::store_error(&error))
}

/// Why a session may not run, from the texts of the functions of the schema.
pub(crate) fn away(here: &str, home: &str, workdir: &str, lacking: &str) -> Away {
    Away {
        here: here.to_owned(),
        home: unquoted(home),
        workdir: unquoted(&format!("\"{workdir}\"")),
        lacking: labels_of(lacking),
    }
}

/// Labels as JSON; an empty text has none.
pub(crate) fn labels_of(json: &str) -> Labels {
    serde_json::from_str(json).unwrap_or_default()
}

/// A text that is quoted as in JSON.
fn unquoted(json: &str) -> String {
    serde_json::from_str(json).unwrap_or_else(|_| json.trim_matches('"').to_owned())
}

/// A path as [`unquoted`] expects it, without its quotes: the function `travels_1` compares it with list rows.
pub(crate) fn quoted(path: &str) -> String {
    let json = serde_json::Value::from(path.trim_end_matches('/')).to_string();
    json.trim_matches('"').to_owned()
}
