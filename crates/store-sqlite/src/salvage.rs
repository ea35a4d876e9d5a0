//! Reads of a database with damaged pages: row by row, so that each row that can be read is, and the others are named.

use crate::error::Error;
use crate::values::session_of;
use agentd_protocol::SessionId;
use agentd_store::{Row, StoreError};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, ffi};
use std::collections::BTreeMap;
use std::path::Path;

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

/// Whether a read failed, of a page that is damaged or that the disk does not give. Other failures of the disk may concern
/// what was written.
pub(crate) fn is_unreadable(error: &rusqlite::Error) -> bool {
    let code = error
        .sqlite_error()
        .map(|error| (error.code, error.extended_code));
    matches!(
        code,
        Some(
            (ErrorCode::DatabaseCorrupt, _)
                | (
                    _,
                    ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ | ffi::SQLITE_IOERR_CORRUPTFS
                )
        )
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

/// The row ids of all sessions, and their ids where those can be read.
fn sessions(reader: &Connection) -> BTreeMap<i64, Option<SessionId>> {
    let found = keys(reader, "session", "uid").into_iter();
    found.map(|(id, uid)| (id, session_of(&uid).ok())).collect()
}

/// The row ids of a table with the texts of its key, where those can be read: the index of the key has them, too.
pub(crate) fn keys(reader: &Connection, table: &str, key: &str) -> BTreeMap<i64, String> {
    let mut found = BTreeMap::new();
    for direction in ["", " DESC"] {
        let sql = format!(
            "SELECT rowid, {key} FROM {table} INDEXED BY sqlite_autoindex_{table}_1 WHERE {key} > '' ORDER BY {key}{direction}"
        );
        let _ = each(reader, &sql, &mut found);
        let sql = format!("SELECT rowid, {key} FROM {table} NOT INDEXED ORDER BY rowid{direction}");
        let _ = each(reader, &sql, &mut found);
    }
    // Behind a damaged page, the rows are found one by one.
    let last = found.last_key_value().map_or(0, |(id, _)| *id);
    let Ok(mut select) = reader.prepare_cached(&format!("SELECT {key} FROM {table} WHERE rowid = ?1")) else {
        return found;
    };
    for id in 1..last {
        if let Ok(Some(text)) = select.query_row([id], |row| text(row, 0)).optional() {
            found.insert(id, text);
        }
    }
    found
}

/// Reads until a damaged page.
fn each(reader: &Connection, sql: &str, found: &mut BTreeMap<i64, String>) -> rusqlite::Result<()> {
    let mut select = reader.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        found.insert(row.get(0)?, text(row, 1)?);
    }
    Ok(())
}

fn text(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<String> {
    Ok(String::from_utf8_lossy(row.get_ref(index)?.as_bytes().unwrap_or_default()).into_owned())
}

/// Says which tables have damaged pages, for a store that cannot be opened.
pub(crate) fn explain(connection: &Connection, file: &Path, error: Error) -> Error {
    if !is_damage(&error) {
        return error;
    }
    let tables = damaged_tables(connection).unwrap_or_default();
    let tables = match tables.as_slice() {
        [] => "the schema".to_owned(),
        [one] => format!("the table {one}"),
        more => format!("the tables {}", more.join(", ")),
    };
    let error = StoreError::from(error);
    Error::Store(StoreError::Damaged(format!(
        "{}, in {tables}: {error}",
        file.display()
    )))
}

/// The tables of which a page, or one of an index, is damaged.
fn damaged_tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut select =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let tables = select.query_map([], |row| row.get::<_, String>(0))?;
    let tables = tables.collect::<rusqlite::Result<Vec<_>>>()?;
    let whole = |table: &String| {
        let check = connection.query_row("SELECT * FROM pragma_quick_check(?1)", [table], |row| {
            row.get::<_, String>(0)
        });
        check.is_ok_and(|said| said == "ok")
    };
    Ok(tables.into_iter().filter(|table| !whole(table)).collect())
}

#[cfg(test)]
pub(crate) mod tests;
