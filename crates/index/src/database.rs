//! The database file of one index: words, places and vectors, never the text. A damaged file, or one of another
//! version, is rebuilt, because everything in it can be derived again.

mod read;
mod write;

pub(crate) use read::{ChunkAt, Reader};
pub(crate) use write::{Waiting, Writer};

use crate::error::IndexError;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Increment this when the schema, the words or the chunks change.
const VERSION: i64 = 1;
/// How long a connection waits for another.
const BUSY: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE file(
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  stamp INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  hash BLOB NOT NULL) STRICT;
CREATE TABLE chunk(
  id INTEGER PRIMARY KEY,
  file INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  names TEXT NOT NULL) STRICT;
CREATE INDEX chunk_file ON chunk(file);
CREATE TABLE vector(chunk INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE VIRTUAL TABLE word USING fts5(
  path, names, body, content='', contentless_delete=1, tokenize=\"porter unicode61 remove_diacritics 2 tokenchars '_'\");
INSERT INTO word(word, rank) VALUES('rank', 'bm25(2.0, 8.0, 1.0)');
";

/// Removes an index.
pub(crate) fn remove(file: &Path) -> Result<(), IndexError> {
    for end in ["", "-wal", "-shm"] {
        let mut path = file.as_os_str().to_owned();
        path.push(end);
        let path = PathBuf::from(path);
        match std::fs::remove_file(&path) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                return Err(IndexError::File { path, why });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Opens an index for writing. First removes one that is damaged, of another version, or was being written when the
/// machine went down.
pub(crate) fn open(file: &Path, max_bytes: u64, boot: &str) -> Result<Writer, IndexError> {
    match try_open(file, max_bytes, boot) {
        Ok(Some(writer)) => return Ok(writer),
        Ok(None) => {}
        Err(error) if error.is_broken() => {
            tracing::warn!(file = %file.display(), %error, "rebuilding a damaged index");
        }
        Err(error) => return Err(error),
    }
    remove(file)?;
    try_open(file, max_bytes, boot)?.ok_or(IndexError::Database(rusqlite::Error::InvalidQuery))
}

fn try_open(file: &Path, max_bytes: u64, boot: &str) -> Result<Option<Writer>, IndexError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY)?;
    // Commits do not wait for the disk: after a power loss, the `writing` mark is still set and causes a rebuild.
    connection.execute_batch(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=500; PRAGMA cache_size=-4096;
         PRAGMA journal_size_limit=4194304;",
    )?;
    let page: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let pages = (i64::try_from(max_bytes).unwrap_or(i64::MAX) / page.max(1)).max(1);
    connection.query_row(&format!("PRAGMA max_page_count={pages}"), [], |_| Ok(()))?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if version == 0 && tables == 0 {
        connection.execute_batch(&format!("BEGIN; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT;"))?;
    } else if version != VERSION {
        return Ok(None);
    }
    let writing = meta(&connection, "writing")?;
    if writing.is_some_and(|other| other != boot) {
        return Ok(None);
    }
    Ok(Some(Writer::new(connection, boot.to_owned())))
}

fn meta(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    connection
        .query_row("SELECT value FROM meta WHERE key = ?1", params![key], |row| {
            row.get(0)
        })
        .optional()
}

fn set_meta(connection: &Connection, key: &str, value: Option<&str>) -> rusqlite::Result<()> {
    match value {
        Some(value) => connection.execute(
            "INSERT INTO meta(key, value) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = ?2",
            params![key, value],
        )?,
        None => connection.execute("DELETE FROM meta WHERE key = ?1", params![key])?,
    };
    Ok(())
}

#[cfg(test)]
mod tests;
