//! Content in chunks. A blob exists as long as a session uses it; chunks without a session are swept a day later.

use crate::queries::{all, change, first, get};
use agentd_protocol::{SessionId, Timestamp};
use agentd_store::backend::{ROW_LIMIT, column, hex, name_of};
use agentd_store::{Blob, StoreError};
use bytes::Bytes;
use deadpool_postgres::Object;

/// How long chunks that no session uses are kept: an append that names them may be under way.
const SPARE_MS: u64 = 24 * 3_600 * 1_000;

/// Writes the chunks of blobs, or makes them young again.
pub(crate) async fn put(client: &Object, blobs: &[Blob], now: Timestamp) -> Result<(), StoreError> {
    let sql = "INSERT INTO blob_chunk(name, number, bytes, at_ms) VALUES ($1, $2, $3, $4)
         ON CONFLICT (name, number) DO UPDATE SET at_ms = excluded.at_ms";
    for blob in blobs {
        let chunks = blob.bytes().chunks(ROW_LIMIT);
        // An empty blob has one empty chunk.
        let empty: &[u8] = &[];
        let chunks: Vec<&[u8]> = if blob.bytes().is_empty() {
            vec![empty]
        } else {
            chunks.collect()
        };
        for (number, chunk) in (0_i32..).zip(chunks) {
            change(client, sql, &[&blob.name(), &number, &chunk, &column(now.0)]).await?;
        }
    }
    Ok(())
}

pub(crate) async fn read(client: Object, name: String) -> Result<Option<Bytes>, StoreError> {
    let sql = "SELECT bytes FROM blob_chunk WHERE name = $1 AND EXISTS (SELECT 1 FROM blob_use WHERE blob_use.name = $1)
         ORDER BY number";
    let rows = all(&client, sql, &[&name]).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    for row in &rows {
        bytes.extend_from_slice(get(row, 0)?);
    }
    if name_of(&bytes) == name {
        Ok(Some(bytes.into()))
    } else {
        Err(StoreError::DamagedBlob(name))
    }
}

pub(crate) async fn keep(
    client: Object,
    session: SessionId,
    blob: Blob,
    now: Timestamp,
) -> Result<(), StoreError> {
    put(&client, std::slice::from_ref(&blob), now).await?;
    let id = live(&client, session).await?;
    let sql = "INSERT INTO blob_use(name, session_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    change(&client, sql, &[&blob.name(), &id]).await.map(drop)
}

pub(crate) async fn share(client: Object, from: SessionId, to: SessionId) -> Result<(), StoreError> {
    let (from, to) = (live(&client, from).await?, live(&client, to).await?);
    let sql = "INSERT INTO blob_use(name, session_id) SELECT name, $2 FROM blob_use
         WHERE session_id = $1 AND sum = sum_1(blob_use)
         ON CONFLICT DO NOTHING";
    change(&client, sql, &[&from, &to]).await.map(drop)
}

/// The row of a session that is not deleted.
async fn live(client: &Object, session: SessionId) -> Result<i64, StoreError> {
    let sql = "SELECT id FROM session WHERE uid = $1 AND deleted_ms IS NULL";
    let row = first(client, sql, &[&hex(session)]).await?;
    row.map_or(Err(StoreError::NotFound(session)), |row| get(&row, 0))
}

/// Removes chunks that no session has used for a day.
pub(crate) async fn sweep(client: &Object, now: Timestamp) -> Result<(), StoreError> {
    let sql = "DELETE FROM blob_chunk WHERE at_ms < $1
         AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob_use.name = blob_chunk.name)";
    change(client, sql, &[&column(now.0.saturating_sub(SPARE_MS))])
        .await
        .map(drop)
}
