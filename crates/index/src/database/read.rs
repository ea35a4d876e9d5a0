//! Queries on an index.

use super::{BUSY, VERSION, meta};
use crate::error::IndexError;
use crate::vector::{Best, likeness};
use rusqlite::{Connection, InterruptHandle, OpenFlags, OptionalExtension as _, params};
use std::path::Path;

/// A read connection.
#[derive(Debug)]
pub(crate) struct Reader(Connection);

/// The location of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkAt {
    pub(crate) path: String,
    pub(crate) stamp: u64,
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) names: String,
}

/// The first path, and the exclusive end.
type Range = (String, String);

impl Reader {
    /// Opens an index; `None` if there is none.
    pub(crate) fn open(file: &Path) -> Result<Option<Self>, IndexError> {
        if !file.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.execute_batch("PRAGMA cache_size=-4096; PRAGMA query_only=ON;")?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        Ok((version == VERSION).then_some(Self(connection)))
    }

    /// Interrupts a query from another thread.
    pub(crate) fn interrupt_handle(&self) -> InterruptHandle {
        self.0.get_interrupt_handle()
    }

    /// The number of indexed files, and whether a pass ever saw all files.
    pub(crate) fn extent(&self) -> Result<(u64, bool), IndexError> {
        let files: i64 = self
            .0
            .query_row("SELECT count(*) FROM file", [], |row| row.get(0))?;
        Ok((files.cast_unsigned(), meta(&self.0, "complete")?.is_some()))
    }

    /// The chunks that match a full-text query, the best first.
    pub(crate) fn matching(&self, question: &str, below: &str, most: u32) -> Result<Vec<i64>, IndexError> {
        let ids = if below.is_empty() {
            let mut select = self
                .0
                .prepare_cached("SELECT rowid FROM word WHERE word MATCH ?1 ORDER BY rank LIMIT ?2")?;
            let ids = select.query_map(params![question, most], |row| row.get(0))?;
            ids.collect::<Result<_, _>>()?
        } else {
            let (from, upto) = range(below);
            let mut select = self.0.prepare_cached(
                "SELECT word.rowid FROM word JOIN chunk ON chunk.id = word.rowid JOIN file ON file.id = chunk.file
                 WHERE word MATCH ?1 AND (file.path = ?2 OR (file.path >= ?3 AND file.path < ?4)) ORDER BY rank LIMIT ?5",
            )?;
            let ids = select.query_map(params![question, below, from, upto, most], |row| row.get(0))?;
            ids.collect::<Result<_, _>>()?
        };
        Ok(ids)
    }

    /// The model that made the vectors, if any.
    pub(crate) fn embedded_by(&self) -> Result<Option<String>, IndexError> {
        Ok(meta(&self.0, "embedding")?)
    }

    /// The chunks with the nearest vectors, by a scan of all vectors.
    pub(crate) fn nearest(&self, vector: &[u8], below: &str, most: usize) -> Result<Vec<i64>, IndexError> {
        let mut best = Best::new(most);
        let (from, upto) = range(below);
        let mut select = self.0.prepare_cached(
            "SELECT vector.chunk, vector.bytes FROM vector WHERE ?1 = '' OR vector.chunk IN (
               SELECT chunk.id FROM chunk JOIN file ON file.id = chunk.file
               WHERE path = ?1 OR (path >= ?2 AND path < ?3))",
        )?;
        let mut rows = select.query(params![below, from, upto])?;
        while let Some(row) = rows.next()? {
            let bytes = row.get_ref(1)?.as_blob().unwrap_or_default();
            if let Some(likeness) = likeness(vector, bytes) {
                best.add(row.get(0)?, likeness);
            }
        }
        Ok(best.ids())
    }

    /// The location of a chunk.
    pub(crate) fn place(&self, chunk: i64) -> Result<Option<ChunkAt>, IndexError> {
        let mut select = self.0.prepare_cached(
            "SELECT path, stamp, first, last, names FROM chunk JOIN file ON file.id = chunk.file WHERE chunk.id = ?1",
        )?;
        let place = select.query_row(params![chunk], |row| {
            Ok(ChunkAt {
                path: row.get(0)?,
                stamp: row.get::<_, i64>(1)?.cast_unsigned(),
                first: row.get(2)?,
                last: row.get(3)?,
                names: row.get(4)?,
            })
        });
        Ok(place.optional()?)
    }
}

/// The paths below a directory: `0` follows directly after `/`.
fn range(below: &str) -> Range {
    (format!("{below}/"), format!("{below}0"))
}
