//! A record of what the database has acknowledged, stored next to it: the end of every session's log. Each start
//! compares the two. It thus detects losses that SQLite cannot: a log that was deleted or truncated, an older copy of
//! the file. Invariant I1: a shorter history is never silently taken for the whole one.
//!
//! A record is appended after each commit, but not synced: after a power loss the witness knows less than the database,
//! never more. A start skips records that such a loss has damaged.
//!
//! Flow: commit -> [`Witness::committed`]; start -> [`Witness::open`] -> the sessions that lost events.

use crate::error::Error;
use crate::salvage::is_damage;
use crate::values::{session_of, size, uid};
use agentd_protocol::{Seq, SessionId};
use agentd_store::{Loss, StoreError, problem};
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes of a record: cursor, session, seq, CRC-32 of these.
const RECORD: usize = 8 + 16 + 8 + 4;
/// A file of this length is rewritten with one record per session: about 460,000 appends.
const COMPACT: u64 = 16 * 1024 * 1024;
/// The number of records at the end of the file that a start compares with the database.
const LATEST: u64 = 64;

/// The end of a session's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The cursor of its last event.
    pub(crate) cursor: u64,
    pub(crate) session: SessionId,
    /// The seq of its last event; 0: the session is forgotten.
    pub(crate) seq: Seq,
}

impl Head {
    /// The record of a session that is removed for good.
    pub(crate) const fn forgotten(session: SessionId) -> Self {
        Self {
            cursor: 0,
            session,
            seq: 0,
        }
    }

    fn write(self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend(self.cursor.to_be_bytes());
        bytes.extend(self.session.as_bytes());
        bytes.extend(self.seq.to_be_bytes());
        let sum = crc32fast::hash(bytes.get(start..).unwrap_or_default());
        bytes.extend(sum.to_be_bytes());
    }

    fn read(record: &[u8; RECORD]) -> Option<Self> {
        let (rest, sum) = record.split_last_chunk::<4>()?;
        let (cursor, rest) = rest.split_first_chunk::<8>()?;
        let (session, rest) = rest.split_first_chunk::<16>()?;
        let seq = rest.first_chunk::<8>()?;
        (u32::from_be_bytes(*sum) == crc32fast::hash(record.get(..RECORD - 4)?)).then(|| Self {
            cursor: u64::from_be_bytes(*cursor),
            session: SessionId::from_bytes(*session),
            seq: u64::from_be_bytes(*seq),
        })
    }
}

/// The open file.
#[derive(Debug)]
pub(crate) struct Witness {
    path: PathBuf,
    file: File,
    /// The offset of the next record: after the last complete one.
    end: u64,
    /// The length at which the file is rewritten.
    compact_at: u64,
    /// It was missing although the database has events.
    was_missing: bool,
}

impl Witness {
    /// Opens the witness of a database and compares the two, but for sessions that are set aside: what their rows say of
    /// their logs is known to be wrong.
    ///
    /// # Errors
    /// [`StoreError::Lost`], unless losses are accepted: then it returns them, and the witness starts over.
    pub(crate) fn open(
        database: &Path,
        connection: &Connection,
        accept: bool,
        aside: &BTreeSet<SessionId>,
    ) -> Result<(Self, Vec<Loss>), Error> {
        let mut path = database.as_os_str().to_owned();
        path.push(".witness");
        let path = PathBuf::from(path);
        let failed = |error| StoreError::io(&path, error);
        let made = !path.exists();
        let options = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
        };
        let file = options().map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut witness = Self {
            file,
            end: length - length % RECORD as u64,
            compact_at: COMPACT,
            was_missing: false,
            path: path.clone(),
        };
        if made {
            // A database of an earlier version, or a new one.
            let heads = heads_of(connection)?;
            witness.was_missing = !heads.is_empty();
            if witness.was_missing {
                tracing::warn!("{}", problem::no_witness(&path));
            }
            witness.write_anew(heads.into_values()).map_err(failed)?;
            return Ok((witness, Vec::new()));
        }
        let compared = match witness.is_behind(connection) {
            Ok(false) => return Ok((witness, Vec::new())),
            Ok(true) => witness.compare(connection),
            Err(error) => Err(error),
        };
        let mut lost = match compared {
            Err(error) if is_damage(&error) => {
                tracing::error!("damaged pages prevent the comparison of the database with its witness");
                return Ok((witness, Vec::new()));
            }
            lost => lost?,
        };
        lost.retain(|loss| !aside.contains(&loss.session));
        if !lost.is_empty() && !accept {
            let path = database.to_owned();
            return Err(StoreError::Lost { path, lost }.into());
        }
        let heads = heads_of(connection)?;
        witness.write_anew(heads.into_values()).map_err(failed)?;
        Ok((witness, lost))
    }

    /// Whether it was missing although the database has events.
    pub(crate) const fn was_missing(&self) -> bool {
        self.was_missing
    }

    /// Records what was committed. A witness that cannot be written knows less, which does no other harm.
    pub(crate) fn committed(&mut self, heads: &[Head]) {
        if heads.is_empty() {
            return;
        }
        let mut bytes = Vec::with_capacity(heads.len() * RECORD);
        heads.iter().for_each(|head| head.write(&mut bytes));
        let written = self.file.write_all_at(&bytes, self.end).and_then(|()| {
            self.end += bytes.len() as u64;
            if self.end < self.compact_at {
                return Ok(());
            }
            let heads = self.heads()?;
            self.write_anew(heads.into_values())
        });
        if let Err(error) = written {
            tracing::warn!(%error, path = %self.path.display(), "could not write the database's witness");
        }
    }

    /// Whether the database lacks the events recorded last. The cost does not depend on the length of the file.
    fn is_behind(&self, connection: &Connection) -> Result<bool, Error> {
        let start = self.end.saturating_sub(LATEST * RECORD as u64);
        let mut latest = vec![0; usize::try_from(self.end - start).unwrap_or(0)];
        self.file
            .read_exact_at(&mut latest, start)
            .map_err(|error| StoreError::io(&self.path, error))?;
        let newest: i64 =
            connection.query_row("SELECT coalesce(max(cursor), 0) FROM event", [], |row| row.get(0))?;
        let mut select = connection.prepare("SELECT head FROM session WHERE uid = ?1")?;
        let mut heads = BTreeMap::new();
        read_all(latest.as_slice(), &mut heads).map_err(|error| StoreError::io(&self.path, error))?;
        for head in heads.into_values() {
            if head.cursor > size(newest) {
                return Ok(true);
            }
            let has = select.query_row([uid(head.session)], |row| row.get::<_, i64>(0));
            if has.optional()?.map_or(0, size) < head.seq {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The sessions for which the database holds less than was recorded.
    fn compare(&self, connection: &Connection) -> Result<Vec<Loss>, Error> {
        let noted = self.heads().map_err(|error| StoreError::io(&self.path, error))?;
        let found = heads_of(connection)?;
        let losses = noted.into_values().filter_map(|head| {
            let has = found.get(&head.session).map_or(0, |found| found.seq);
            (has < head.seq).then_some(Loss {
                session: head.session,
                had: head.seq,
                has,
            })
        });
        Ok(losses.collect())
    }

    /// The last record of every session that is not forgotten.
    fn heads(&self) -> io::Result<BTreeMap<SessionId, Head>> {
        let mut heads = BTreeMap::new();
        let file = BufReader::with_capacity(256 * RECORD, File::open(&self.path)?);
        read_all(file.take(self.end), &mut heads)?;
        heads.retain(|_, head| head.seq > 0);
        Ok(heads)
    }

    /// Replaces the file with one that holds these records. A crash leaves either the old or the new file.
    fn write_anew(&mut self, heads: impl Iterator<Item = Head>) -> io::Result<()> {
        let mut beside = self.path.as_os_str().to_owned();
        beside.push(".new");
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)?;
        let mut out = BufWriter::new(file);
        let mut bytes = Vec::with_capacity(RECORD);
        let mut end = 0;
        for head in heads {
            bytes.clear();
            head.write(&mut bytes);
            out.write_all(&bytes)?;
            end += RECORD as u64;
        }
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        if end > 0 {
            file.sync_data()?;
        }
        fs::rename(&beside, &self.path)?;
        (self.file, self.end, self.compact_at) = (file, end, COMPACT.max(end * 2));
        Ok(())
    }
}

/// Reads records. The later of two records of a session counts.
fn read_all(mut from: impl io::Read, heads: &mut BTreeMap<SessionId, Head>) -> io::Result<()> {
    let mut record = [0; RECORD];
    loop {
        match from.read_exact(&mut record) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        if let Some(head) = Head::read(&record) {
            heads.insert(head.session, head);
        }
    }
}

/// The heads in the database, and its newest cursor.
fn heads_of(connection: &Connection) -> Result<BTreeMap<SessionId, Head>, Error> {
    let cursor: i64 =
        connection.query_row("SELECT coalesce(max(cursor), 0) FROM event", [], |row| row.get(0))?;
    let cursor = size(cursor);
    let mut select = connection.prepare("SELECT uid, head FROM session WHERE head > 0")?;
    let heads = select.query_map([], |row| {
        let (session, seq): (String, i64) = (row.get(0)?, row.get(1)?);
        // An unreadable id is set aside.
        let session = session_of(&session).ok();
        let head = |session| {
            (
                session,
                Head {
                    cursor,
                    session,
                    seq: size(seq),
                },
            )
        };
        Ok(session.map(head))
    })?;
    Ok(heads.filter_map(Result::transpose).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests;
