//! Copies the whole store while others write: one read transaction of the database, and the blobs that it names.

use crate::blob_files::BlobFiles;
use crate::error::Error;
use crate::row_sum::LISTED;
use crate::values::size;
use agentd_store::Copied;
use agentd_store::backend::private_dir;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Copies `agentd.db` and `blobs` into a directory.
pub(crate) fn copy(database: &Path, files: &BlobFiles, dir: &Path) -> Result<Copied, Error> {
    let blobs = dir.join("blobs");
    private_dir(&blobs)?;
    // The copy keeps blobs that a purge removes from now on; blobs that are added are linked below.
    for name in files.names()? {
        files.link(&name, &blobs)?;
    }
    let copy = dir.join("agentd.db");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(database, flags)?;
    source.execute("VACUUM INTO ?1", [copy.to_string_lossy()])?;
    let copy = Connection::open_with_flags(&copy, flags)?;
    let mut named = copy.prepare("SELECT name FROM blob WHERE bytes IS NULL")?;
    for name in named.query_map([], |row| row.get::<_, String>(0))? {
        let name = name?;
        if !files.link(&name, &blobs)? {
            tracing::warn!(%name, "a blob is missing from the store, so the backup does not contain it");
        }
    }
    let count = |sql: &str| copy.query_row(sql, [], |row| row.get::<_, i64>(0)).map(size);
    Ok(Copied {
        cursor: count("SELECT coalesce(max(cursor), 0) FROM event")?,
        sessions: count(&format!(
            "SELECT count(*) FROM session WHERE deleted_ms IS NULL AND {LISTED}"
        ))?,
    })
}
