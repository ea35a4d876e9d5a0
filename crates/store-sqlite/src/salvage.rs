//! Reads of a database with damaged pages: row by row, so that each row that can be read is, and the others are named.

use crate::error::Error;
use crate::values::session_of;
use agentd_protocol::SessionId;
use agentd_store::Row;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _};
use std::collections::BTreeMap;

/// Whether a page could not be read.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Sqlite(error) if is_damaged_page(error))
}

/// The same of an error of SQLite.
pub(crate) fn is_damaged_page(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SystemIoFailure)
    )
}

/// The rows that could be read.
#[derive(Debug)]
pub(crate) struct Found<T> {
    pub(crate) rows: Vec<T>,
    /// The rows are those of all sessions, in no order.
    pub(crate) one_by_one: bool,
}

/// Runs a read; one that finds a damaged page is repeated for each session alone, which the SQL that it is given selects.
pub(crate) fn read<T>(
    reader: &Connection,
    run: impl Fn(&str) -> Result<Vec<T>, Error>,
    unreadable: impl Fn(SessionId) -> Option<T>,
) -> Result<Found<T>, Error> {
    let found = match run("") {
        Err(error) if is_damage(&error) => error,
        answer => {
            return Ok(Found {
                rows: answer?,
                one_by_one: false,
            });
        }
    };
    let mut read = Vec::new();
    let mut lost = 0;
    for (id, session) in sessions(reader) {
        match run(&format!(" AND session.id = {id}")) {
            Ok(rows) => read.extend(rows),
            Err(error) if is_damage(&error) => {
                lost += 1;
                read.extend(session.and_then(&unreadable));
            }
            Err(error) => return Err(error),
        }
    }
    if read.is_empty() && lost == 0 {
        return Err(found);
    }
    tracing::error!(
        sessions = lost,
        "the database has damaged pages; restore it from a backup"
    );
    Ok(Found {
        rows: read,
        one_by_one: true,
    })
}

/// The row of a session that cannot be read.
pub(crate) fn unreadable(session: SessionId) -> Row {
    Row::aside(session, 0, 0)
}

/// The row ids of all sessions, and their ids where those can be read: the index of the ids has them, too.
fn sessions(reader: &Connection) -> BTreeMap<i64, Option<SessionId>> {
    let mut found = BTreeMap::new();
    for direction in ["", " DESC"] {
        let sql = format!(
            "SELECT id, uid FROM session INDEXED BY sqlite_autoindex_session_1 WHERE uid > '' ORDER BY uid{direction}"
        );
        let _ = each(reader, &sql, &mut found);
        let _ = each(
            reader,
            &format!("SELECT id, uid FROM session NOT INDEXED ORDER BY id{direction}"),
            &mut found,
        );
    }
    // Behind a damaged page, the rows are found one by one.
    let last = found.last_key_value().map_or(0, |(id, _)| *id);
    let Ok(mut select) = reader.prepare_cached("SELECT uid FROM session WHERE id = ?1") else {
        return found;
    };
    for id in 1..last {
        if let Ok(Some(uid)) = select.query_row([id], |row| row.get::<_, String>(0)).optional() {
            found.insert(id, session_of(&uid).ok());
        }
    }
    found
}

/// Reads until a damaged page.
fn each(
    reader: &Connection,
    sql: &str,
    found: &mut BTreeMap<i64, Option<SessionId>>,
) -> rusqlite::Result<()> {
    let mut select = reader.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let uid: String = row.get(1)?;
        found.insert(row.get(0)?, session_of(&uid).ok());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
