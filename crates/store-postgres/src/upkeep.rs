//! Retention, and the check for damage.

use crate::error::store_error;
use crate::queries::{LISTED, ROW, all, change, count_of, first, get, is_placed, list_row};
use agentd_protocol::{SessionId, Timestamp};
use agentd_store::backend::{KEY_LIFE_MS, column, hex, name_of};
use agentd_store::cell_sum::SUMS;
use agentd_store::{EventColumns, Integrity, StoreError, problem};
use deadpool_postgres::Object;
use futures_util::{StreamExt as _, pin_mut};

/// The maximum number of events removed in one transaction.
const PURGE_STEP: i64 = 2_000;

/// The next session to remove: deleted long ago, or left over from an interrupted import.
/// Not damaged rows: they may not mean what they say.
const NEXT: &str = "SELECT id FROM session
WHERE (deleted_ms < $1 OR (deleted_ms IS NULL AND summary IS NULL AND row_sum IS NULL AND state = '' AND updated_ms < $1 AND uid <> $2))
  AND own_sum = own_sum_1(session) AND head_sum = head_sum_1(session) LIMIT 1";

pub(crate) async fn purge(client: Object, before: Timestamp, now: Timestamp) -> Result<u64, StoreError> {
    let oldest = column(now.0.saturating_sub(KEY_LIFE_MS));
    change(&client, "DELETE FROM idempotency WHERE at_ms <= $1", &[&oldest]).await?;
    let mut sessions = 0;
    let before = column(before.0);
    while let Some(next) = first(&client, NEXT, &[&before, &hex(SessionId::NIL)]).await? {
        let id: i64 = get(&next, 0)?;
        let events =
            "DELETE FROM event WHERE cursor IN (SELECT cursor FROM event WHERE session_id = $1 LIMIT $2)";
        while change(&client, events, &[&id, &PURGE_STEP]).await? > 0 {}
        let rest =
            "WITH uses AS (DELETE FROM blob_use WHERE session_id = $1) DELETE FROM session WHERE id = $1";
        sessions += change(&client, rest, &[&id]).await?;
    }
    crate::blobs::sweep(&client, now).await?;
    Ok(sessions)
}

const GAPS: &str = "SELECT uid, head, coalesce(events, 0), coalesce(newest, 0) FROM session
LEFT JOIN (SELECT session_id, count(*) AS events, max(seq) AS newest FROM event GROUP BY session_id) AS logs
  ON session_id = session.id
WHERE deleted_ms IS NULL AND (coalesce(events, 0) <> head OR coalesce(newest, 0) <> head) LIMIT 100";

const SIZE: &str = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
  WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace";

/// Reads everything. Whether the server checks its pages is its own affair (`data_checksums`).
pub(crate) async fn check(client: Object) -> Result<Integrity, StoreError> {
    let number = async |sql: &str| {
        let row = first(&client, sql, &[]).await?;
        row.map_or(Ok(0), |row| count_of(&row, 0))
    };
    let mut found = Integrity {
        sessions: number(&format!(
            "SELECT count(*) FROM session WHERE deleted_ms IS NULL AND {LISTED}"
        ))
        .await?,
        events: number("SELECT count(*) FROM event").await?,
        bytes: number(SIZE).await?,
        warnings: crate::rules::warnings(&client).await?,
        ..Integrity::default()
    };
    for row in all(&client, GAPS, &[]).await? {
        let problem = problem::gap(get(&row, 0)?, get(&row, 1)?, get(&row, 2)?, get(&row, 3)?);
        found.problems.push(problem);
    }
    changed_lines(&client, &mut found.problems).await?;
    let rows = format!("SELECT {ROW} FROM session WHERE {LISTED}");
    each(&client, &rows, &mut found.problems, |row| {
        let damaged = is_placed(row)? && list_row(row)?.damaged;
        Ok(damaged.then_some(problem::row(get(row, 0)?)))
    })
    .await?;
    damaged_entries(&client, &mut found.problems).await?;
    let orphans = "SELECT count(*) FROM event WHERE NOT EXISTS (SELECT 1 FROM session WHERE id = session_id)";
    let orphans = number(orphans).await?;
    if orphans > 0 {
        found.problems.push(problem::orphans(column(orphans)));
    }
    let blobs = "SELECT name, string_agg(bytes, ''::bytea ORDER BY number) FROM blob_chunk
       WHERE EXISTS (SELECT 1 FROM blob_use WHERE blob_use.name = blob_chunk.name) GROUP BY name";
    each(&client, blobs, &mut found.problems, |row| {
        let name: &str = get(row, 0)?;
        Ok((name_of(get(row, 1)?) != name).then(|| problem::blob(name)))
    })
    .await?;
    Ok(found)
}

/// Events that do not match their checksums.
async fn changed_lines(client: &Object, problems: &mut Vec<String>) -> Result<(), StoreError> {
    let lines = "SELECT uid, seq, body, sum, cursor, event.epoch, at_ms, kind, append_id
       FROM event JOIN session ON session.id = session_id";
    each(client, lines, problems, |row| {
        let event = EventColumns {
            uid: get(row, 0)?,
            seq: get(row, 1)?,
            body: get::<&str>(row, 2)?.as_bytes(),
            cursor: get(row, 4)?,
            epoch: get(row, 5)?,
            at_ms: get(row, 6)?,
            kind: get(row, 7)?,
            append_id: get(row, 8)?,
        };
        let whole = event.is_whole(get(row, 3)?);
        Ok((!whole).then_some(problem::line(get(row, 0)?, get(row, 1)?)))
    })
    .await
}

/// Rows that do not match their checksums.
async fn damaged_entries(client: &Object, problems: &mut Vec<String>) -> Result<(), StoreError> {
    for of in SUMS {
        let function = match of.sum {
            "sum" => "sum_1",
            "own_sum" => "own_sum_1",
            _ => "head_sum_1",
        };
        let (table, name, sum) = (of.table, of.name_sql(), of.sum);
        let damaged = format!("SELECT {name} FROM {table} WHERE {sum} IS DISTINCT FROM {function}({table})");
        each(client, &damaged, problems, |row| {
            let name: Option<&str> = get(row, 0)?;
            let name = name.unwrap_or_default();
            Ok(Some(match of.table {
                "session" => problem::aside(name),
                _ => problem::entry(of, name),
            }))
        })
        .await?;
    }
    Ok(())
}

/// Streams rows, and collects what is wrong with them, up to [`problem::MOST`].
async fn each(
    client: &Object,
    sql: &str,
    problems: &mut Vec<String>,
    wrong: impl Fn(&tokio_postgres::Row) -> Result<Option<String>, StoreError>,
) -> Result<(), StoreError> {
    // Reading everything may take longer than a statement normally may.
    let run = async |sql: &str| {
        let done = client.batch_execute(sql).await;
        done.map_err(|error| store_error(&error))
    };
    run("SET statement_timeout = 0").await?;
    let read = stream(client, sql, problems, wrong).await;
    run(&crate::server::settings()).await?;
    read
}

async fn stream(
    client: &Object,
    sql: &str,
    problems: &mut Vec<String>,
    wrong: impl Fn(&tokio_postgres::Row) -> Result<Option<String>, StoreError>,
) -> Result<(), StoreError> {
    let none: [&(dyn tokio_postgres::types::ToSql + Sync); 0] = [];
    let rows = client.query_raw(sql, none).await;
    let rows = rows.map_err(|error| store_error(&error))?;
    pin_mut!(rows);
    while let Some(row) = rows.next().await {
        let row = row.map_err(|error| store_error(&error))?;
        if problems.len() < problem::MOST {
            problems.extend(wrong(&row)?);
        }
    }
    Ok(())
}
