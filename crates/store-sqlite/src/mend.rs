//! Damaged rows of sessions: their events and their checksums tell what the rows said. A session whose row cannot be
//! mended is set aside, and costs no other one (I6).

use crate::error::Error;
use crate::row_sum::{self, WHOLE_EVENT};
use crate::salvage::is_damage;
use crate::values::{session_of, size, uid};
use agentd_protocol::{SessionId, Timestamp};
use agentd_store::EncodedEvent;
use agentd_store::backend::{OwnColumns, head_sum};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::BTreeSet;

/// A damaged row.
struct Damaged {
    id: i64,
    own: OwnColumns,
    own_sum: Option<i64>,
    updated_ms: i64,
}

/// Mends the rows of all sessions, and returns the sessions that stay set aside, by all the names that they may have.
pub(crate) fn all(connection: &Connection) -> Result<BTreeSet<SessionId>, Error> {
    match each(connection) {
        // What can be read is; a check names the rest.
        Err(error) if is_damage(&error) => {
            tracing::error!("the database has damaged pages; restore it from a backup");
            Ok(BTreeSet::new())
        }
        aside => aside,
    }
}

fn each(connection: &Connection) -> Result<BTreeSet<SessionId>, Error> {
    let mut select = connection.prepare(&damaged_sql(""))?;
    let found = select.query_map([], damaged)?.collect::<Result<Vec<_>, _>>()?;
    let mut aside = BTreeSet::new();
    for row in &found {
        let of_log = named_by_log(connection, row.id)?;
        if mend(connection, row, of_log)? {
            tracing::warn!(session = row.own.uid, "mended the damaged row of a session");
            continue;
        }
        tracing::error!(
            session = row.own.uid,
            "the row of a session is damaged; it is set aside"
        );
        aside.extend(session_of(&row.own.uid).ok().into_iter().chain(of_log));
    }
    Ok(aside)
}

/// Mends the row of one session. Returns whether it is whole now.
pub(crate) fn one(writer: &Connection, session: SessionId) -> rusqlite::Result<bool> {
    let mut select = writer.prepare(&damaged_sql(" AND uid = ?1"))?;
    let Some(row) = select.query_row([uid(session)], damaged).optional()? else {
        return Ok(true);
    };
    let mended = mend(writer, &row, None)?;
    if mended {
        tracing::warn!(%session, "mended the damaged row of a session");
    }
    Ok(mended)
}

fn damaged_sql(which: &str) -> String {
    let placed = &*row_sum::PLACED;
    format!(
        "SELECT id, uid, epoch, created_ms, deleted_ms, own_sum, updated_ms FROM session WHERE NOT {placed}{which}"
    )
}

fn damaged(row: &rusqlite::Row<'_>) -> rusqlite::Result<Damaged> {
    Ok(Damaged {
        id: row.get(0)?,
        own: OwnColumns {
            uid: String::from_utf8_lossy(row.get_ref(1)?.as_bytes().unwrap_or_default()).into_owned(),
            epoch: row.get(2)?,
            created_ms: row.get(3)?,
            deleted_ms: row.get(4)?,
        },
        own_sum: row.get(5)?,
        updated_ms: row.get(6)?,
    })
}

/// The session that the first event of a log names.
fn named_by_log(connection: &Connection, id: i64) -> rusqlite::Result<Option<SessionId>> {
    let first = "SELECT body FROM event WHERE session_id = ?1 ORDER BY seq LIMIT 1";
    let line = connection.prepare_cached(first)?.query_row([id], |row| {
        Ok(row.get_ref(0)?.as_bytes().unwrap_or_default().to_vec())
    });
    let event = line.optional()?.and_then(|line| EncodedEvent::decode(&line).ok());
    Ok(event.map(|event| event.session))
}

/// Whether the row is whole now.
fn mend(connection: &Connection, row: &Damaged, of_log: Option<SessionId>) -> rusqlite::Result<bool> {
    let own = row.own_sum.and_then(|sum| match row.own.sum() == sum {
        true => Some(row.own.clone()),
        false => row.own.mended(of_log, sum),
    });
    let Some(own) = own else {
        return Ok(false);
    };
    let mut update = connection.prepare_cached(
        "UPDATE OR IGNORE session SET uid = ?2, epoch = ?3, created_ms = ?4, deleted_ms = ?5, own_sum = ?6
         WHERE id = ?1",
    )?;
    update.execute(params![
        row.id,
        own.uid,
        own.epoch,
        own.created_ms,
        own.deleted_ms,
        own.sum()
    ])?;
    if is_placed(connection, row.id)? {
        return Ok(true);
    }
    let Some((head, append_id)) = end_of_log(connection, row.id)? else {
        return Ok(false);
    };
    let sum = head_sum(&own.uid, size(head), &append_id, Timestamp(size(row.updated_ms)));
    connection
        .prepare_cached("UPDATE session SET head = ?2, last_append = ?3, head_sum = ?4 WHERE id = ?1")?
        .execute(params![row.id, head, append_id, sum])?;
    is_placed(connection, row.id)
}

fn is_placed(connection: &Connection, id: i64) -> rusqlite::Result<bool> {
    let sql = format!("SELECT {} FROM session WHERE id = ?1", *row_sum::PLACED);
    connection.prepare_cached(&sql)?.query_row([id], |row| row.get(0))
}

/// The last event of a log and the id of its append, if all events are there and whole. The witness knows whether there
/// were more.
fn end_of_log(connection: &Connection, id: i64) -> rusqlite::Result<Option<(i64, Vec<u8>)>> {
    let sql = format!(
        "SELECT seq, append_id FROM event JOIN session ON session.id = session_id
         WHERE session_id = ?1 AND {WHOLE_EVENT} ORDER BY seq"
    );
    let mut select = connection.prepare(&sql)?;
    let mut rows = select.query([id])?;
    let (mut head, mut last) = (0, None);
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(0)? != head + 1 {
            return Ok(None);
        }
        (head, last) = (head + 1, row.get::<_, Option<Vec<u8>>>(1)?);
    }
    let events = "SELECT count(*) FROM event WHERE session_id = ?1";
    let events: i64 = connection.query_row(events, [id], |row| row.get(0))?;
    // The last event of an append has its id.
    Ok(last.filter(|_| events == head).map(|id| (head, id)))
}

#[cfg(test)]
mod tests;
