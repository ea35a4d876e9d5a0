//! The public keys of nodes.

use crate::queries::{all, change, count_of, first, get};
use agentd_store::{Incarnation, KnownKey, StoreError};
use deadpool_postgres::Object;
use tokio_postgres::Row;

const KNOWN: &str = "SELECT n.name, n.id, k.key FROM node n JOIN node_key k ON k.name = n.name
  WHERE NOT n.dead AND (k.until > clock_timestamp() OR (k.until IS NULL AND NOT k.removed))
    AND NOT EXISTS (SELECT 1 FROM node_barred b WHERE b.name = n.name)";

/// The incarnation of a node that asked to join, or why it may not.
pub(crate) fn joined(row: &Row, server: String, name: &str) -> Result<i64, StoreError> {
    let id = match (get(row, 0)?, get(row, 1)?) {
        (0, Some(id)) => id,
        (outcome, _) => return Err(refused(server, name.to_owned(), outcome)),
    };
    if get(row, 2)? {
        tracing::warn!(node = name, "joined the fleet with another key than before");
    }
    Ok(id)
}

const fn refused(server: String, name: String, outcome: i32) -> StoreError {
    match outcome {
        1 => StoreError::NameTaken { server, name },
        _ => StoreError::KeyRemoved { server, name },
    }
}

pub(crate) async fn known(client: Object) -> Result<Vec<KnownKey>, StoreError> {
    let rows = all(&client, KNOWN, &[]).await?;
    let known = |row: &Row| {
        Ok(KnownKey {
            name: get(row, 0)?,
            incarnation: Incarnation(count_of(row, 1)?),
            key: get(row, 2)?,
        })
    };
    rows.iter().map(known).collect()
}

pub(crate) async fn rotate(client: Object, me: i64, key: String, grace_ms: i64) -> Result<(), StoreError> {
    let row = first(
        &client,
        "SELECT rotate_key_1($1, $2, $3)",
        &[&me, &key, &grace_ms],
    )
    .await?;
    match row.as_ref().map_or(Ok(false), |row| get(row, 0))? {
        true => Ok(()),
        false => Err(StoreError::NodeLost),
    }
}

pub(crate) async fn remove(client: Object, name: String) -> Result<bool, StoreError> {
    let row = first(&client, "SELECT remove_key_1($1)", &[&name]).await?;
    row.as_ref().map_or(Ok(false), |row| get(row, 0))
}

pub(crate) async fn admit(client: Object, name: String) -> Result<bool, StoreError> {
    let admitted = change(&client, "DELETE FROM node_barred WHERE name = $1", &[&name]).await?;
    Ok(admitted > 0)
}
