//! The read statements, each short.

use crate::error::store_error;
use agentd_protocol::{Labels, Principal, SessionId, Timestamp};
use agentd_store::backend::{
    ID_DIGITS, KEY_LIFE_MS, OwnColumns, PageBuilder, RowColumns, WatchedBuilder, column, head_sum, hex,
    id_part, size,
};
use agentd_store::{
    Charge, Direction, EventColumns, Page, Range, Row, StoreError, StoredKey, Watched, WatchedEvent,
};
use bytes::Bytes;
use deadpool_postgres::Object;
use std::collections::BTreeMap;
use tokio_postgres::types::{FromSql, ToSql};

/// Prepares a statement once per connection, and runs it.
pub(crate) async fn all(
    client: &Object,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<tokio_postgres::Row>, StoreError> {
    let statement = client.prepare_cached(sql).await;
    let statement = statement.map_err(|error| store_error(&error))?;
    let rows = client.query(&statement, params).await;
    rows.map_err(|error| store_error(&error))
}

pub(crate) async fn first(
    client: &Object,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Option<tokio_postgres::Row>, StoreError> {
    Ok(all(client, sql, params).await?.into_iter().next())
}

/// Runs a change, and returns the number of rows.
pub(crate) async fn change(
    client: &Object,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<u64, StoreError> {
    let statement = client.prepare_cached(sql).await;
    let statement = statement.map_err(|error| store_error(&error))?;
    let rows = client.execute(&statement, params).await;
    rows.map_err(|error| store_error(&error))
}

/// A value of a row.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a tokio_postgres::Row, index: usize) -> Result<T, StoreError> {
    row.try_get(index).map_err(|error| store_error(&error))
}

pub(crate) fn count_of(row: &tokio_postgres::Row, index: usize) -> Result<u64, StoreError> {
    get::<i64>(row, index).map(size)
}

pub(crate) fn session_of(uid: &str) -> Result<SessionId, StoreError> {
    let bad = |_| StoreError::Server(format!("{uid:?} is not a session's id"));
    uid.parse().map_err(bad)
}

/// A page of a log, with its head: one row without an event if the page is empty, none if there is no such session. Reads
/// the first event that is beyond the limits as well, so that the page knows whether there are more.
fn page_sql(direction: Direction) -> String {
    let order = match direction {
        Direction::Forward => "ASC",
        Direction::Backward => "DESC",
    };
    format!(
        "SELECT s.at_head, page.seq, page.body, page.sum, page.cursor, page.epoch, page.at_ms, page.kind, page.append_id
         FROM (SELECT id, CASE WHEN head_sum = head_sum_1(session) THEN head
                 ELSE coalesce((SELECT max(seq) FROM event WHERE session_id = id), 0) END AS at_head
               FROM session WHERE uid = $1 AND {LIVE}) AS s LEFT JOIN LATERAL (
           SELECT seq, body, sum, cursor, epoch, at_ms, kind, append_id, coalesce(sum(octet_length(body)) OVER
             (ORDER BY seq {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING), 0) AS before
           FROM event WHERE session_id = s.id AND seq > $2 AND seq <= coalesce($3, s.at_head)
           ORDER BY seq {order} LIMIT $4) AS page ON before <= $5
         ORDER BY page.seq {order}"
    )
}

pub(crate) async fn load(client: Object, session: SessionId, range: Range) -> Result<Page, StoreError> {
    let (limit, bytes) = range.limits();
    let (limit, bytes) = (column(limit as u64 + 1), column(bytes as u64));
    let (after, upto) = (column(range.after), range.upto.map(column));
    let uid = hex(session);
    let rows = all(
        &client,
        &page_sql(range.direction),
        &[&uid, &after, &upto, &limit, &bytes],
    )
    .await?;
    let found = rows.first().ok_or(StoreError::NotFound(session))?;
    let mut page = PageBuilder::new(count_of(found, 0)?, &range);
    for row in &rows {
        let Some(seq) = get::<Option<i64>>(row, 1)? else {
            break;
        };
        let body = get::<&str>(row, 2)?;
        let event = EventColumns {
            uid: &uid,
            cursor: get(row, 4)?,
            seq,
            epoch: get(row, 5)?,
            at_ms: get(row, 6)?,
            kind: get(row, 7)?,
            append_id: get(row, 8)?,
            body: body.as_bytes(),
        };
        let whole = event.is_whole(get(row, 3)?);
        if !page.add(size(seq), Bytes::copy_from_slice(body.as_bytes()), whole) {
            break;
        }
    }
    Ok(page.done())
}

/// The columns of a list row.
pub(crate) const ROW: &str =
    "uid, epoch, head, name, state, closed, labels::text, resumable, wake_at_ms, summary, row_sum, own_sum, head_sum,
     created_ms, deleted_ms, last_append, updated_ms";

/// SQL that checks whether a session has a list row: one that is being imported has none yet. A damaged row without a summary
/// is one.
pub(crate) const LISTED: &str = "(summary IS NOT NULL OR row_sum IS NOT NULL OR state <> '')";

/// SQL that checks whether a session exists: a damaged row is no proof that it was deleted.
pub(crate) const LIVE: &str = "(deleted_ms IS NULL OR own_sum IS DISTINCT FROM own_sum_1(session))";

/// Whether what places a session and its log is as it was written; without it, the session is set aside.
pub(crate) fn is_placed(row: &tokio_postgres::Row) -> Result<bool, StoreError> {
    let uid: &str = get(row, 0)?;
    let own = OwnColumns {
        uid: uid.to_owned(),
        epoch: get(row, 1)?,
        created_ms: get(row, 13)?,
        deleted_ms: get(row, 14)?,
    };
    let updated = Timestamp(count_of(row, 16)?);
    let head = head_sum(uid, count_of(row, 2)?, get(row, 15)?, updated);
    let stored: (Option<i64>, Option<i64>) = (get(row, 11)?, get(row, 12)?);
    Ok(stored == (Some(own.sum()), Some(head)))
}

/// Parses the columns of [`ROW`]. A row that does not match its checksum is damaged.
pub(crate) fn list_row(row: &tokio_postgres::Row) -> Result<Row, StoreError> {
    let (uid, summary): (&str, Option<&str>) = (get(row, 0)?, get(row, 9)?);
    if !is_placed(row)? {
        return Ok(Row::aside(session_of(uid)?, count_of(row, 1)?, count_of(row, 2)?));
    }
    let labels = serde_json::from_str::<Labels>(get(row, 6)?).unwrap_or_default();
    let columns = RowColumns {
        uid,
        name: get(row, 3)?,
        state: get(row, 4)?,
        closed: get(row, 5)?,
        labels: &serde_json::to_string(&labels)?,
        resumable: get(row, 7)?,
        wake_at_ms: get(row, 8)?,
        summary: summary.unwrap_or_default(),
    };
    let whole = get::<Option<i64>>(row, 10)? == Some(columns.sum());
    let summary = summary
        .filter(|_| whole)
        .map(|json| Bytes::copy_from_slice(json.as_bytes()));
    Ok(Row::stored(
        session_of(uid)?,
        count_of(row, 1)?,
        count_of(row, 2)?,
        summary.as_ref(),
    ))
}

pub(crate) async fn row(client: Object, session: SessionId) -> Result<Option<Row>, StoreError> {
    let sql = format!("SELECT {ROW} FROM session WHERE uid = $1 AND {LIVE} AND {LISTED}");
    let found = first(&client, &sql, &[&hex(session)]).await?;
    if let Some(row) = &found
        && !is_placed(row)?
    {
        return Err(StoreError::Aside(session));
    }
    match found.as_ref().map(list_row).transpose()? {
        Some(row) if row.damaged => Err(StoreError::DamagedRow(session)),
        row => Ok(row),
    }
}

/// Finds the row of a whole id, which programs give.
const RESOLVE_ID: &str = "SELECT uid, name FROM session
WHERE uid = $1 AND (deleted_ms IS NULL OR own_sum IS DISTINCT FROM own_sum_1(session)) AND (summary IS NOT NULL OR row_sum IS NOT NULL OR state <> '')
  AND labels @> $2::text::jsonb";

/// Finds other references: it looks at every row.
const RESOLVE: &str = "SELECT uid, name, CASE WHEN name = $1 THEN 1 ELSE 0 END AS rank FROM session
WHERE (deleted_ms IS NULL OR own_sum IS DISTINCT FROM own_sum_1(session)) AND (summary IS NOT NULL OR row_sum IS NOT NULL OR state <> '')
  AND (name = $1 OR ($2 AND (left(uid, length($3)) = $3 OR right(uid, length($3)) = $3
                            OR substr(uid, 21, length($3)) = $3)))
  AND labels @> $4::text::jsonb
ORDER BY rank DESC, uid DESC LIMIT 10";

/// A full id takes precedence over an exact name, and a name over a part of an id.
pub(crate) async fn resolve(
    client: Object,
    text: String,
    labels: String,
) -> Result<Vec<(SessionId, String)>, StoreError> {
    let hex = id_part(&text);
    let (is_part, hex) = (hex.is_some(), hex.unwrap_or_default());
    if hex.len() == ID_DIGITS
        && let Some(row) = first(&client, RESOLVE_ID, &[&hex, &labels]).await?
    {
        return Ok(vec![(session_of(get(&row, 0)?)?, get(&row, 1)?)]);
    }
    let rows = all(
        &client,
        RESOLVE,
        &[&crate::batch::clean(&text), &is_part, &hex, &labels],
    )
    .await?;
    let mut best = None;
    let mut found = Vec::new();
    for row in &rows {
        let rank: i32 = get(row, 2)?;
        if *best.get_or_insert(rank) == rank {
            found.push((session_of(get(row, 0)?)?, get(row, 1)?));
        }
    }
    Ok(found)
}

pub(crate) async fn count(client: Object) -> Result<u64, StoreError> {
    let sql = format!("SELECT count(*) FROM session WHERE deleted_ms IS NULL AND {LISTED}");
    first(&client, &sql, &[])
        .await?
        .map_or(Ok(0), |row| count_of(&row, 0))
}

pub(crate) async fn states(
    client: Object,
    of: Option<Vec<SessionId>>,
) -> Result<BTreeMap<String, u64>, StoreError> {
    let of: Option<Vec<String>> = of.map(|of| of.into_iter().map(hex).collect());
    let sql = format!(
        "SELECT state, count(*) FROM session WHERE deleted_ms IS NULL AND {LISTED} AND NOT closed
         AND ($1::text[] IS NULL OR uid = ANY ($1)) GROUP BY state"
    );
    let rows = all(&client, &sql, &[&of]).await?;
    let counts = rows.iter().map(|row| Ok((get(row, 0)?, count_of(row, 1)?)));
    counts.collect()
}

pub(crate) async fn key(
    client: Object,
    principal: Principal,
    key: String,
    now: Timestamp,
) -> Result<Option<StoredKey>, StoreError> {
    let oldest = column(now.0.saturating_sub(KEY_LIFE_MS));
    let sql = "SELECT method, body_hash, answer, sum = sum_1(idempotency) FROM idempotency
         WHERE principal = $1 AND key = $2 AND (at_ms > $3 OR sum IS DISTINCT FROM sum_1(idempotency))";
    let (principal, key) = (crate::batch::clean(&principal.0), crate::batch::clean(&key));
    let Some(row) = first(&client, sql, &[&principal, &key, &oldest]).await? else {
        return Ok(None);
    };
    if get::<Option<bool>>(&row, 3)? != Some(true) {
        // Its answer is unknown, and whether the command was carried out.
        return Err(StoreError::DamagedEntry(format!(
            "the answer of the idempotency key {key:?}"
        )));
    }
    Ok(Some(StoredKey {
        method: get(&row, 0)?,
        body_hash: get::<&[u8]>(&row, 1)?.try_into().unwrap_or_default(),
        answer: get(&row, 2)?,
    }))
}

pub(crate) async fn cursor(client: &Object) -> Result<u64, StoreError> {
    let row = first(client, "SELECT cursor FROM stream", &[]).await?;
    row.map_or(Ok(0), |row| count_of(&row, 0))
}

/// Like a page of a log: at most one event beyond the limit of bytes is read. `LIMIT 1` asks for the session event by event: with
/// a plan from when the tables were empty, a plain join read the events of each session for every page. The inner `SELECT` parses
/// the ranges once, not for each event.
const WATCH: &str = "SELECT cursor, uid, seq, kind, body FROM (
  SELECT cursor, uid, seq, kind, body,
    sum(octet_length(body)) OVER (ORDER BY cursor) - octet_length(body) AS before
  FROM (SELECT cursor, uid, seq, kind, body FROM event
          CROSS JOIN LATERAL (SELECT uid FROM session WHERE id = session_id AND deleted_ms IS NULL LIMIT 1) AS s
        WHERE cursor > $1 AND NOT cursor <@ (SELECT $4::text::int8multirange)
        ORDER BY cursor LIMIT $2) AS next) AS page
WHERE before <= $3 ORDER BY cursor";

/// Events after a cursor, without those of the set `but`.
pub(crate) async fn watch(
    client: Object,
    after: Option<u64>,
    but: String,
    limit: u32,
) -> Result<Watched, StoreError> {
    let Some(after) = after else {
        return Ok(Watched {
            events: Vec::new(),
            cursor: cursor(&client).await?,
        });
    };
    let most = agentd_store::backend::clamp(limit, agentd_store::MAX_PAGE) as u64;
    let bytes = i64::from(agentd_store::MAX_PAGE_BYTES);
    let rows = all(&client, WATCH, &[&column(after), &column(most), &bytes, &but]).await?;
    let mut watched = WatchedBuilder::new(after, limit);
    for row in &rows {
        let event = WatchedEvent {
            cursor: count_of(row, 0)?,
            session: session_of(get(row, 1)?)?,
            seq: count_of(row, 2)?,
            kind: get(row, 3)?,
            body: get::<String>(row, 4)?.into(),
        };
        if !watched.add(event) {
            break;
        }
    }
    Ok(watched.done())
}

pub(crate) async fn charged(client: Object, account: String) -> Result<Charge, StoreError> {
    let sql = "SELECT tokens, micro_usd, sum = sum_1(charge) FROM charge WHERE account = $1";
    let row = first(&client, sql, &[&crate::batch::clean(&account)]).await?;
    if let Some(row) = &row
        && get::<Option<bool>>(row, 2)? != Some(true)
    {
        return Err(StoreError::DamagedEntry(format!("the account {account:?}")));
    }
    let (tokens, micro_usd) = match &row {
        Some(row) => (count_of(row, 0)?, count_of(row, 1)?),
        None => (0, 0),
    };
    Ok(Charge {
        account,
        tokens,
        micro_usd,
    })
}
