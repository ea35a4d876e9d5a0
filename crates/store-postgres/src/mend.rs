//! A damaged row of a session: its events and its checksums tell what the row said. A session whose row cannot be mended is
//! set aside, and costs no other one (I6).

use crate::error::store_error;
use crate::queries::{LIVE, change, first, get};
use agentd_protocol::{SessionId, Timestamp};
use agentd_store::backend::{OwnColumns, head_sum, hex, size};
use agentd_store::{EncodedEvent, EventColumns, StoreError};
use deadpool_postgres::Object;
use futures_util::{StreamExt as _, pin_mut};

const DAMAGED: &str =
    "SELECT id, uid, epoch, created_ms, deleted_ms, own_sum, updated_ms FROM session WHERE uid = $1";

/// Only if nobody changed the row meanwhile.
const OWN: &str = "UPDATE session SET uid = $2, epoch = $3, created_ms = $4, deleted_ms = $5, own_sum = $6
  WHERE id = $1 AND own_sum IS DISTINCT FROM own_sum_1(session)";

const HEAD: &str = "UPDATE session SET head = $2, last_append = $3, head_sum = $4
  WHERE id = $1 AND head_sum IS DISTINCT FROM head_sum_1(session)";

const PLACED: &str =
    "SELECT 1 FROM session WHERE id = $1 AND own_sum = own_sum_1(session) AND head_sum = head_sum_1(session)";

/// Mends the row of a session. Returns whether it is whole now; false if there is no such session.
pub(crate) async fn one(client: &Object, session: SessionId) -> Result<bool, StoreError> {
    let damaged = format!("{DAMAGED} AND {LIVE}");
    let Some(row) = first(client, &damaged, &[&hex(session)]).await? else {
        return Ok(false);
    };
    let (id, sum): (i64, Option<i64>) = (get(&row, 0)?, get(&row, 5)?);
    let own = OwnColumns {
        uid: get(&row, 1)?,
        epoch: get(&row, 2)?,
        created_ms: get(&row, 3)?,
        deleted_ms: get(&row, 4)?,
    };
    let own = match sum {
        Some(sum) if own.sum() != sum => own.mended(named_by_log(client, id).await?, sum),
        Some(_) => Some(own),
        None => None,
    };
    let Some(own) = own else {
        return Ok(false);
    };
    change(
        client,
        OWN,
        &[
            &id,
            &own.uid,
            &own.epoch,
            &own.created_ms,
            &own.deleted_ms,
            &own.sum(),
        ],
    )
    .await?;
    if !is_placed(client, id).await?
        && let Some((head, append_id)) = end_of_log(client, id, &own.uid).await?
    {
        let updated: i64 = get(&row, 6)?;
        let sum = head_sum(&own.uid, size(head), &append_id, Timestamp(size(updated)));
        change(client, HEAD, &[&id, &head, &append_id, &sum]).await?;
    }
    let mended = is_placed(client, id).await?;
    if mended {
        tracing::warn!(%session, "mended the damaged row of a session");
    }
    Ok(mended)
}

async fn is_placed(client: &Object, id: i64) -> Result<bool, StoreError> {
    Ok(first(client, PLACED, &[&id]).await?.is_some())
}

/// The session that the first event of a log names.
async fn named_by_log(client: &Object, id: i64) -> Result<Option<SessionId>, StoreError> {
    let sql = "SELECT body FROM event WHERE session_id = $1 ORDER BY seq LIMIT 1";
    let row = first(client, sql, &[&id]).await?;
    let line: Option<&str> = row.as_ref().map(|row| get(row, 0)).transpose()?;
    let event = line.and_then(|line| EncodedEvent::decode(line.as_bytes()).ok());
    Ok(event.map(|event| event.session))
}

/// The last event of a log and the id of its append, if all events up to it are there and whole.
async fn end_of_log(client: &Object, id: i64, uid: &str) -> Result<Option<(i64, Vec<u8>)>, StoreError> {
    let sql = "SELECT seq, body, sum, cursor, epoch, at_ms, kind, append_id FROM event WHERE session_id = $1 ORDER BY seq";
    let rows = client.query_raw(sql, [id]).await;
    let rows = rows.map_err(|error| store_error(&error))?;
    pin_mut!(rows);
    let (mut head, mut last) = (0, None);
    while let Some(row) = rows.next().await {
        let row = row.map_err(|error| store_error(&error))?;
        let append_id: Option<&[u8]> = get(&row, 7)?;
        let event = EventColumns {
            uid,
            seq: get(&row, 0)?,
            body: get::<&str>(&row, 1)?.as_bytes(),
            cursor: get(&row, 3)?,
            epoch: get(&row, 4)?,
            at_ms: get(&row, 5)?,
            kind: get(&row, 6)?,
            append_id,
        };
        if event.seq != head + 1 || !event.is_whole(get(&row, 2)?) {
            return Ok(None);
        }
        (head, last) = (event.seq, append_id.map(<[u8]>::to_vec));
    }
    // The last event of an append has its id.
    Ok(last.map(|id| (head, id)))
}
