//! The read queries, each short.

use crate::error::Error;
use crate::order;
use crate::row_sum::{LISTED, LIVE, PLACED, WHOLE, WHOLE_EVENT};
use crate::salvage;
use crate::values::{column, session_of, size, uid};
use agentd_protocol::SessionId;
use agentd_store::MAX_LIST;
use agentd_store::backend::{ID_DIGITS, PageBuilder, WatchedBuilder, clamp, id_part};
use agentd_store::{Direction, Filter, Page, Range, Row, StoreError, Watched, WatchedEvent};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A text column, read without checking its encoding.
fn line(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<Bytes> {
    Ok(Bytes::copy_from_slice(row.get_ref(index)?.as_bytes()?))
}

static FORWARD: LazyLock<String> = LazyLock::new(|| events_sql(""));
static BACKWARD: LazyLock<String> = LazyLock::new(|| events_sql(" DESC"));

fn events_sql(order: &str) -> String {
    format!(
        "SELECT seq, body, {WHOLE_EVENT} FROM event JOIN session ON session.id = session_id
         WHERE session_id = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq{order}"
    )
}

pub(crate) fn load(reader: &Connection, session: SessionId, range: Range) -> Result<Page, Error> {
    let (id, head) = place(reader, session)?.ok_or(StoreError::NotFound(session))?;
    let mut select = reader.prepare_cached(match range.direction {
        Direction::Forward => &FORWARD,
        Direction::Backward => &BACKWARD,
    })?;
    let upto = range.upto.map_or(head, column);
    let mut rows = select.query(params![id, column(range.after), upto])?;
    let mut page = PageBuilder::new(size(head), &range);
    while let Some(row) = rows.next()? {
        if !page.add(size(row.get(0)?), line(row, 1)?, row.get(2)?) {
            break;
        }
    }
    Ok(page.done())
}

static PLACE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT id, iif({}, head, (SELECT coalesce(max(seq), 0) FROM event WHERE session_id = id))
         FROM session WHERE uid = ?1 AND {}",
        *PLACED, *LIVE
    )
});

/// The row of a session, and the end of its log: of a damaged row, what the events say.
fn place(reader: &Connection, session: SessionId) -> rusqlite::Result<Option<(i64, i64)>> {
    let mut select = reader.prepare_cached(&PLACE)?;
    let found = select.query_row([uid(session)], |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional()
}

/// The columns of a list row.
struct Found {
    uid: String,
    /// What places the session and its log is as it was written.
    placed: bool,
    /// Absent: the row differs from what its owner wrote.
    summary: Option<Bytes>,
    epoch: u64,
    head: u64,
}

/// Parses the columns `uid, epoch, head, whole, summary, placed`.
fn list_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Found> {
    let whole: bool = row.get(3)?;
    Ok(Found {
        uid: row.get(0)?,
        summary: if whole { Some(line(row, 4)?) } else { None },
        epoch: size(row.get(1)?),
        head: size(row.get(2)?),
        placed: row.get(5)?,
    })
}

fn parse_row(found: &Found) -> Result<Row, Error> {
    let session = session_of(&found.uid)?;
    if !found.placed {
        return Ok(Row::aside(session, found.epoch, found.head));
    }
    Ok(Row::stored(
        session,
        found.epoch,
        found.head,
        found.summary.as_ref(),
    ))
}

/// Fails if the row of a session is on a damaged page: to write there would stop the store.
pub(crate) fn readable(reader: &Connection, session: SessionId) -> Result<(), Error> {
    // The whole row, with its pages beyond the first one.
    let sql = "SELECT length(summary), deleted_ms FROM session WHERE uid = ?1 AND summary <> ''";
    match reader.prepare_cached(sql)?.exists([uid(session)]) {
        Err(error) if salvage::is_damaged_page(&error) => Err(StoreError::Aside(session).into()),
        found => Ok(found.map(drop)?),
    }
}

static ROW: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT uid, epoch, head, {WHOLE}, summary, {} FROM session WHERE uid = ?1 AND {} AND {LISTED}",
        *PLACED, *LIVE
    )
});

pub(crate) fn row(reader: &Connection, session: SessionId) -> Result<Option<Row>, Error> {
    let mut select = reader.prepare_cached(&ROW)?;
    let found = match select.query_row([uid(session)], list_row).optional() {
        Err(error) if salvage::is_damaged_page(&error) => return Err(StoreError::Aside(session).into()),
        found => found?,
    };
    if found.as_ref().is_some_and(|found| !found.placed) {
        return Err(StoreError::Aside(session).into());
    }
    match found.as_ref().map(parse_row).transpose()? {
        Some(row) if row.damaged => Err(StoreError::DamagedRow(session).into()),
        row => Ok(row),
    }
}

/// The condition that a session has all labels of a JSON object; an empty object matches every session.
pub(crate) fn carries(object: &str) -> String {
    format!(
        "({object} = '{{}}' OR NOT EXISTS (SELECT 1 FROM json_each({object}) AS want WHERE NOT EXISTS
       (SELECT 1 FROM json_each(iif(json_valid(session.labels), session.labels, '{{}}')) AS has
        WHERE has.key = want.key AND has.value = want.value)))"
    )
}

/// Conditions that read a column of a damaged row must not fail the whole list.
fn list_sql(filter: &Filter, which: &str) -> String {
    let carries = carries("?3");
    let (beyond, direction) = if filter.ascending {
        (">", "ASC")
    } else {
        ("<", "DESC")
    };
    let (place, order) = match order::expression(filter.sort) {
        None => (format!("uid {beyond} ?8"), String::new()),
        Some(key) => (
            format!("({key}, uid) {beyond} (?7, ?8)"),
            format!("{key} {direction}, "),
        ),
    };
    let (placed, live) = (&*PLACED, &*LIVE);
    // SQLite computes an expression again at each of its places, so the two sums are columns of their own.
    let whole = format!("({WHOLE} AND {placed})");
    format!(
        "SELECT uid, epoch, head, {WHOLE}, summary, {placed} FROM session
WHERE {place} AND {live} AND {LISTED}{which}
  AND (?1 OR closed = 0 OR NOT {whole})
  AND (?2 = '[]' OR EXISTS (SELECT 1 FROM json_each(?2) AS want
       WHERE state = want.value OR substr(state, 1, length(want.value) + 1) = want.value || '('))
  AND {carries}
  AND (NOT ?4 OR resumable = 1 OR wake_at_ms IS NOT NULL OR NOT {whole})
  AND (?5 = '' OR agentd_has(?5, summary))
ORDER BY {order}uid {direction} LIMIT ?6"
    )
}

pub(crate) fn list(reader: &Connection, filter: &Filter) -> Result<Vec<Row>, Error> {
    let any = filter.labels.is_empty() && filter.states.is_empty();
    let found = salvage::read(
        reader,
        |which| page_of(reader, filter, which),
        |session| any.then(|| salvage::unreadable(session)),
    )?;
    let mut rows = found.rows;
    if found.one_by_one {
        order::sort(&mut rows, filter);
        rows.truncate(clamp(filter.limit, MAX_LIST));
    }
    Ok(rows)
}

/// The rows of a page, or those of one session.
fn page_of(reader: &Connection, filter: &Filter, which: &str) -> Result<Vec<Row>, Error> {
    let (key, before) = order::beginning(reader, filter)?;
    let closed_too = filter.all || !filter.states.is_empty();
    let states = serde_json::to_string(&filter.states)?;
    let labels = serde_json::to_string(&filter.labels)?;
    let limit = i64::try_from(clamp(filter.limit, MAX_LIST)).unwrap_or(i64::MAX);
    let mut select = reader.prepare_cached(&list_sql(filter, which))?;
    let found = params![
        closed_too,
        states,
        labels,
        filter.resumable_or_timed,
        filter.search,
        limit,
        key,
        before
    ];
    let rows = select.query_map(found, list_row)?;
    let mut list = Vec::new();
    for found in rows {
        match parse_row(&found?) {
            Ok(row) => list.push(row),
            Err(error) => {
                let error = StoreError::from(error);
                tracing::error!(%error, "skipping a list row without a readable session id");
            }
        }
    }
    Ok(list)
}

fn resolve_sql(which: &str) -> String {
    let live = &*LIVE;
    format!(
        "SELECT uid, name, CASE WHEN name = ?1 THEN 1 ELSE 0 END AS rank FROM session
WHERE {live} AND {LISTED}{which}
  AND (name = ?1 OR (?2 AND (substr(uid, 1, length(?3)) = ?3 OR substr(uid, -length(?3)) = ?3
                            OR substr(uid, 21, length(?3)) = ?3)))
  AND {}
ORDER BY rank DESC, uid DESC LIMIT 10",
        carries("?4")
    )
}

/// A full id takes precedence over an exact name, and a name over a part of an id: its start, its end, or the start of
/// its last 12 digits, which the user interfaces show.
pub(crate) fn resolve(
    reader: &Connection,
    text: &str,
    labels: &str,
) -> Result<Vec<(SessionId, String)>, Error> {
    let hex = id_part(text);
    // Programs give whole ids. Other references need a look at every row.
    if let Some(id) = hex.as_deref().filter(|hex| hex.len() == ID_DIGITS) {
        let sql = format!(
            "SELECT uid, name FROM session WHERE uid = ?1 AND {} AND {LISTED} AND {}",
            *LIVE,
            carries("?2")
        );
        let mut select = reader.prepare_cached(&sql)?;
        let found = select.query_row(params![id, labels], |row| {
            Ok((session_of(&row.get::<_, String>(0)?)?, row.get(1)?))
        });
        match found.optional() {
            Ok(Some(found)) => return Ok(vec![found]),
            Err(error) if !salvage::is_damaged_page(&error) => return Err(error.into()),
            Ok(None) | Err(_) => {}
        }
    }
    let find = |which: &str| resolved(reader, text, hex.as_deref(), (labels, which));
    let mut rows = salvage::read(reader, find, |_| None)?.rows;
    rows.sort_by_key(|(session, _, rank)| std::cmp::Reverse((*rank, *session)));
    let best = rows.first().map_or(0, |(_, _, rank)| *rank);
    let best = rows.into_iter().filter(|(_, _, rank)| *rank == best).take(10);
    Ok(best.map(|(session, name, _)| (session, name)).collect())
}

fn resolved(
    reader: &Connection,
    text: &str,
    hex: Option<&str>,
    (labels, which): (&str, &str),
) -> Result<Vec<(SessionId, String, i64)>, Error> {
    let mut select = reader.prepare_cached(&resolve_sql(which))?;
    let wanted = params![text, hex.is_some(), hex.unwrap_or_default(), labels];
    let rows = select.query_map(wanted, |row| {
        // An unreadable id names no session, and hides no other one.
        let session = session_of(&row.get::<_, String>(0)?).ok();
        let (name, rank) = (row.get(1)?, row.get(2)?);
        Ok(session.map(|session| (session, name, rank)))
    })?;
    Ok(rows.filter_map(Result::transpose).collect::<Result<_, _>>()?)
}

pub(crate) fn count(reader: &Connection) -> Result<u64, Error> {
    let counted = |which: &str| {
        let sql = format!("SELECT count(*) FROM session WHERE deleted_ms IS NULL AND {LISTED}{which}");
        let mut select = reader.prepare_cached(&sql)?;
        Ok(vec![size(select.query_row([], |row| row.get(0))?)])
    };
    let counts = salvage::read(reader, counted, |_| Some(1))?;
    Ok(counts.rows.into_iter().sum())
}

/// Reads no summaries: only the columns that are stored with them.
pub(crate) fn states(reader: &Connection, of: Option<&[SessionId]>) -> Result<BTreeMap<String, u64>, Error> {
    let open = format!("deleted_ms IS NULL AND {LISTED} AND closed = 0");
    let mut select;
    let mut rows = match of {
        None => {
            let sql = format!("SELECT state, count(*) FROM session WHERE {open} GROUP BY state");
            select = reader.prepare_cached(&sql)?;
            select.query([])?
        }
        Some(of) => {
            let sql = format!(
                "SELECT state, count(*) FROM session WHERE {open} AND uid IN (SELECT value FROM json_each(?1)) GROUP BY state"
            );
            let of = serde_json::to_string(&of.iter().map(|id| uid(*id)).collect::<Vec<_>>())?;
            select = reader.prepare_cached(&sql)?;
            select.query([of])?
        }
    };
    let mut counts = BTreeMap::new();
    while let Some(row) = rows.next()? {
        counts.insert(row.get(0)?, size(row.get(1)?));
    }
    Ok(counts)
}

/// `Some(None)`: the blob is known, but stored in a file.
pub(crate) fn blob(reader: &Connection, name: &str) -> Result<Option<Option<Bytes>>, Error> {
    let mut select = reader.prepare_cached("SELECT bytes FROM blob WHERE name = ?1")?;
    let found = select
        .query_row([name], |row| row.get::<_, Option<Vec<u8>>>(0))
        .optional()?;
    Ok(found.map(|bytes| bytes.map(Bytes::from)))
}

pub(crate) fn watch(reader: &Connection, after: Option<u64>, limit: u32) -> Result<Watched, Error> {
    let mut newest = reader.prepare_cached("SELECT coalesce(max(cursor), 0) FROM event")?;
    let Some(after) = after else {
        return Ok(Watched {
            events: Vec::new(),
            cursor: size(newest.query_row([], |row| row.get(0))?),
        });
    };
    let mut select = reader.prepare_cached(
        "SELECT cursor, uid, seq, kind, body FROM event JOIN session ON session.id = session_id
         WHERE cursor > ?1 AND deleted_ms IS NULL ORDER BY cursor",
    )?;
    let mut rows = select.query([column(after)])?;
    let mut watched = WatchedBuilder::new(after, limit);
    while let Some(row) = rows.next()? {
        let Ok(session) = session_of(&row.get::<_, String>(1)?) else {
            tracing::error!("skipping an event of a session with an unreadable id");
            continue;
        };
        let event = WatchedEvent {
            cursor: size(row.get(0)?),
            session,
            seq: size(row.get(2)?),
            kind: row.get(3)?,
            body: line(row, 4)?,
        };
        if !watched.add(event) {
            break;
        }
    }
    Ok(watched.done())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::open_reader;
    use crate::tests::kit::Kit;
    use rusqlite::StatementStatus::RePrepare;

    #[tokio::test]
    async fn a_list_is_prepared_once() {
        let kit = Kit::sqlite();
        kit.created(1).await;
        let reader = open_reader(&kit.dir().join("agentd.db")).unwrap();
        let all = Filter {
            all: true,
            ..Filter::default()
        };
        for filter in [&Filter::default(), &all, &Filter::default()] {
            assert_eq!(list(&reader, filter).unwrap().len(), 1);
        }
        let select = reader.prepare_cached(&list_sql(&all, "")).unwrap();
        assert_eq!(select.get_status(RePrepare), 0);
    }
}
