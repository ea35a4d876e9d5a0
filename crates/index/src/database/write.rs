//! Updates of an index.

use super::{meta, set_meta};
use crate::chunk::Chunk;
use crate::error::IndexError;
use crate::words::write_down;
use rusqlite::{Connection, OptionalExtension as _, params};

/// The write connection.
#[derive(Debug)]
pub(crate) struct Writer {
    connection: Connection,
    boot: String,
    open: bool,
}

/// The indexed version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) id: i64,
    pub(crate) stamp: u64,
    pub(crate) bytes: u64,
    pub(crate) hash: Vec<u8>,
}

/// A chunk without a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) chunk: i64,
    pub(crate) path: String,
    pub(crate) stamp: u64,
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl Writer {
    pub(super) const fn new(connection: Connection, boot: String) -> Self {
        Self {
            connection,
            boot,
            open: false,
        }
    }

    /// Starts a batch, unless one is open.
    fn begin(&mut self) -> Result<(), IndexError> {
        if !self.open {
            self.mark_writing()?;
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
            self.open = true;
        }
        Ok(())
    }

    /// Commits the batch, which makes it visible to searches.
    pub(crate) fn commit(&mut self) -> Result<(), IndexError> {
        if self.open {
            self.connection.execute_batch("COMMIT")?;
            self.open = false;
        }
        Ok(())
    }

    /// Abandons the batch.
    pub(crate) fn roll_back(&mut self) {
        if self.open {
            // The error that leads here may have rolled it back already.
            let _ = self.connection.execute_batch("ROLLBACK");
            self.open = false;
        }
    }

    /// The indexed version of a file, if any.
    pub(crate) fn known(&self, path: &str) -> Result<Option<Known>, IndexError> {
        let mut select = self
            .connection
            .prepare_cached("SELECT id, stamp, bytes, hash FROM file WHERE path = ?1")?;
        let known = select.query_row(params![path], |row| {
            Ok(Known {
                id: row.get(0)?,
                stamp: row.get::<_, i64>(1)?.cast_unsigned(),
                bytes: row.get::<_, i64>(2)?.cast_unsigned(),
                hash: row.get(3)?,
            })
        });
        Ok(known.optional()?)
    }

    /// Updates the stamp of a file with unchanged content.
    pub(crate) fn touch(&mut self, id: i64, stamp: u64) -> Result<(), IndexError> {
        self.begin()?;
        self.connection
            .prepare_cached("UPDATE file SET stamp = ?2 WHERE id = ?1")?
            .execute(params![id, stamp.cast_signed()])?;
        Ok(())
    }

    /// Inserts a file, or replaces its indexed version. Returns its id.
    pub(crate) fn put(
        &mut self,
        path: &str,
        (stamp, bytes, hash): (u64, u64, &[u8]),
        lines: &[&str],
        chunks: &[Chunk],
    ) -> Result<i64, IndexError> {
        if let Some(old) = self.known(path)? {
            self.forget(old.id)?;
        }
        self.begin()?;
        self.connection
            .prepare_cached("INSERT INTO file(path, stamp, bytes, hash) VALUES(?1, ?2, ?3, ?4)")?
            .execute(params![path, stamp.cast_signed(), bytes.cast_signed(), hash])?;
        let file = self.connection.last_insert_rowid();
        let mut place = String::new();
        write_down(path, &mut place);
        let (mut names, mut body) = (String::new(), String::new());
        for chunk in chunks {
            names.clear();
            body.clear();
            let (from, upto) = (at(chunk.first).saturating_sub(1), at(chunk.last));
            for line in lines.get(from..upto).unwrap_or_default() {
                write_down(line, &mut body);
            }
            let defined = chunk.names.join("\n");
            write_down(&defined, &mut names);
            self.connection
                .prepare_cached("INSERT INTO chunk(file, first, last, names) VALUES(?1, ?2, ?3, ?4)")?
                .execute(params![file, chunk.first, chunk.last, defined])?;
            let id = self.connection.last_insert_rowid();
            self.connection
                .prepare_cached("INSERT INTO word(rowid, path, names, body) VALUES(?1, ?2, ?3, ?4)")?
                .execute(params![id, place, names, body])?;
        }
        Ok(file)
    }

    /// Removes a file with its chunks, words and vectors.
    pub(crate) fn forget(&mut self, file: i64) -> Result<(), IndexError> {
        self.begin()?;
        for statement in [
            "DELETE FROM word WHERE rowid IN (SELECT id FROM chunk WHERE file = ?1)",
            "DELETE FROM vector WHERE chunk IN (SELECT id FROM chunk WHERE file = ?1)",
            "DELETE FROM chunk WHERE file = ?1",
            "DELETE FROM file WHERE id = ?1",
        ] {
            self.connection
                .prepare_cached(statement)?
                .execute(params![file])?;
        }
        Ok(())
    }

    /// The ids of the next files after this one, in order.
    pub(crate) fn files_after(&self, id: i64, most: u32) -> Result<Vec<i64>, IndexError> {
        let mut select = self
            .connection
            .prepare_cached("SELECT id FROM file WHERE id > ?1 ORDER BY id LIMIT ?2")?;
        let ids = select.query_map(params![id, most], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// Records the model that makes the vectors. Deletes the vectors of any other model, because they are not comparable.
    pub(crate) fn embedded_by(&mut self, who: &str) -> Result<(), IndexError> {
        if meta(&self.connection, "embedding")?.as_deref() != Some(who) {
            self.begin()?;
            self.connection.execute("DELETE FROM vector", [])?;
            set_meta(&self.connection, "embedding", Some(who))?;
            self.commit()?;
        }
        Ok(())
    }

    /// The next chunks after this one that have no vector.
    pub(crate) fn without_vector(&self, after: i64, most: u32) -> Result<Vec<Waiting>, IndexError> {
        let mut select = self.connection.prepare_cached(
            "SELECT chunk.id, path, stamp, first, last FROM chunk JOIN file ON file.id = chunk.file
             WHERE chunk.id > ?1 AND chunk.id NOT IN (SELECT chunk FROM vector) ORDER BY chunk.id LIMIT ?2",
        )?;
        let rows = select.query_map(params![after, most], |row| {
            Ok(Waiting {
                chunk: row.get(0)?,
                path: row.get(1)?,
                stamp: row.get::<_, i64>(2)?.cast_unsigned(),
                first: row.get(3)?,
                last: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Stores the vectors of chunks.
    pub(crate) fn put_vectors(&mut self, vectors: &[(i64, Vec<u8>)]) -> Result<(), IndexError> {
        self.begin()?;
        for (chunk, bytes) in vectors {
            self.connection
                .prepare_cached("INSERT OR REPLACE INTO vector(chunk, bytes) VALUES(?1, ?2)")?
                .execute(params![chunk, bytes])?;
        }
        self.commit()
    }

    /// Sets a mark until the pass ends: if the machine goes down before that, the file may be damaged.
    fn mark_writing(&mut self) -> Result<(), IndexError> {
        if meta(&self.connection, "writing")?.is_some() {
            return Ok(());
        }
        self.connection.execute_batch("PRAGMA synchronous=NORMAL")?;
        set_meta(&self.connection, "writing", Some(&self.boot))?;
        self.checkpoint()?;
        self.connection.execute_batch("PRAGMA synchronous=OFF")?;
        Ok(())
    }

    /// Ends a pass: marks the index as complete, with all changes on disk.
    pub(crate) fn complete(&mut self) -> Result<(), IndexError> {
        self.commit()?;
        if meta(&self.connection, "writing")?.is_some() {
            self.connection.execute_batch("PRAGMA synchronous=NORMAL")?;
            self.checkpoint()?;
            set_meta(&self.connection, "writing", None)?;
            self.checkpoint()?;
        }
        if meta(&self.connection, "complete")?.is_none() {
            set_meta(&self.connection, "complete", Some("1"))?;
        }
        Ok(())
    }

    fn checkpoint(&self) -> Result<(), IndexError> {
        // Readers may keep part of it from running; the next checkpoint does the rest.
        self.connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(())
    }
}

fn at(line: u32) -> usize {
    usize::try_from(line).unwrap_or(usize::MAX)
}
