//! Tombstones, retention, and the damage check.

use crate::blob_files::BlobFiles;
use crate::committer::Tx;
use crate::error::Error;
use crate::row_sum::{self, LISTED, WHOLE, WHOLE_EVENT};
use crate::salvage;
use crate::values::{column, session_of, size, uid};
use crate::witness::Head;
use agentd_protocol::{SessionId, Summary, Timestamp};
use agentd_store::backend::{KEY_LIFE_MS, name_of};
use agentd_store::cell_sum::{SESSION_OWN, SUMS};
use agentd_store::{Integrity, StoreError, problem};
use rusqlite::{Connection, OptionalExtension, params};
use std::path::Path;
use std::sync::LazyLock;

/// The maximum number of events removed in one transaction, so that a purge does not delay appends.
const PURGE_STEP: usize = 2_000;

/// The maximum number of sessions removed in one transaction.
const PURGE_SESSIONS: u64 = 64;

/// The result of one purge step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purged {
    Part,
    Session,
    Nothing,
}

pub(crate) fn delete(writer: &Connection, session: SessionId, now: Timestamp) -> rusqlite::Result<bool> {
    let set = [("epoch", "session.epoch + 1"), ("deleted_ms", "?2")];
    let (sum, live) = (row_sum::sum(&SESSION_OWN, &set), &*row_sum::LIVE);
    let mut update = writer.prepare_cached(&format!(
        "UPDATE session SET deleted_ms = ?2, epoch = epoch + 1, owner = NULL, own_sum = {sum} WHERE uid = ?1 AND {live}"
    ))?;
    if update.execute(params![uid(session), column(now.0)])? == 0 {
        return Ok(false);
    }
    crate::spending::remember(writer, session)?;
    Ok(true)
}

pub(crate) fn forget_keys(writer: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    let oldest = column(now.0.saturating_sub(KEY_LIFE_MS));
    writer.execute("DELETE FROM idempotency WHERE at_ms <= ?1", [oldest])?;
    Ok(())
}

/// The next session to remove: deleted long ago, or left over from an interrupted import. Skips the session with the
/// newest event, so that cursors only rise, and damaged rows: they may not mean what they say.
static NEXT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT id, uid FROM session
WHERE (deleted_ms < ?1 OR (deleted_ms IS NULL AND NOT {LISTED} AND updated_ms < ?1 AND uid <> ?2))
  AND id <> coalesce((SELECT session_id FROM event ORDER BY cursor DESC LIMIT 1), 0) AND {} LIMIT 1",
        *row_sum::PLACED
    )
});

/// Removes some sessions in one transaction. Returns how many, and whether there may be more.
pub(crate) fn purge_some(
    writer: &Tx<'_>,
    files: &BlobFiles,
    before: Timestamp,
) -> rusqlite::Result<(u64, bool)> {
    for removed in 0..PURGE_SESSIONS {
        match purge_step(writer, files, before)? {
            Purged::Session => {}
            Purged::Part => return Ok((removed, true)),
            Purged::Nothing => return Ok((removed, false)),
        }
    }
    Ok((PURGE_SESSIONS, true))
}

fn purge_step(writer: &Tx<'_>, files: &BlobFiles, before: Timestamp) -> rusqlite::Result<Purged> {
    let next = writer.query_row(&NEXT, params![column(before.0), uid(SessionId::NIL)], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    });
    let Some((id, session)) = next.optional()? else {
        return Ok(Purged::Nothing);
    };
    let mut remove = writer.prepare_cached(
        "DELETE FROM event WHERE cursor IN (SELECT cursor FROM event WHERE session_id = ?1 LIMIT ?2)",
    )?;
    if remove.execute(params![id, i64::try_from(PURGE_STEP).unwrap_or(i64::MAX)])? == PURGE_STEP {
        return Ok(Purged::Part);
    }
    let mut unused = writer.prepare(
        "SELECT name, bytes IS NULL FROM blob WHERE name IN (SELECT name FROM blob_use WHERE session_id = ?1)
         AND name NOT IN (SELECT name FROM blob_use WHERE session_id <> ?1)",
    )?;
    let unused: Vec<(String, bool)> = unused
        .query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (name, in_file) in unused {
        if in_file {
            files
                .remove(&name)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        }
        writer.execute("DELETE FROM blob WHERE name = ?1", [name])?;
    }
    writer.execute("DELETE FROM blob_use WHERE session_id = ?1", [id])?;
    writer.execute("DELETE FROM snapshot WHERE session_id = ?1", [id])?;
    writer.execute("DELETE FROM session WHERE id = ?1", [id])?;
    writer.note(Head::forgotten(session_of(&session)?));
    Ok(Purged::Session)
}

/// Free pages kept in the file for new data: 4 MiB.
const SPARE: i64 = 1_024;
/// Pages freed in one transaction: 1 MiB, so that appends wait only milliseconds.
const GIVE_BACK: i64 = 256;

/// Returns some of the file's free pages to the disk, and whether more remain.
pub(crate) fn give_back(writer: &Connection) -> rusqlite::Result<bool> {
    let free = || writer.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0));
    let before = free()?;
    if before <= SPARE {
        return Ok(false);
    }
    writer.execute_batch(&format!("PRAGMA incremental_vacuum({GIVE_BACK});"))?;
    // A file of an earlier version has no map of its pages, so it cannot free any.
    Ok(free()? < before)
}

const GAPS: &str = "
SELECT uid, head, coalesce(events, 0), coalesce(newest, 0) FROM session
LEFT JOIN (SELECT session_id, count(*) AS events, max(seq) AS newest FROM event GROUP BY session_id)
  ON session_id = session.id
WHERE deleted_ms IS NULL AND (coalesce(events, 0) <> head OR coalesce(newest, 0) <> head) LIMIT 100";

/// The size of the database file with its write-ahead log.
pub(crate) fn file_bytes(file: &Path) -> u64 {
    let mut wal = file.as_os_str().to_owned();
    wal.push("-wal");
    let size = |file: &Path| std::fs::metadata(file).map_or(0, |file| file.len());
    size(file) + size(Path::new(&wal))
}

/// One part of a check: what it finds wrong.
type Part = fn(&Connection, &BlobFiles, &mut Vec<String>) -> Result<(), Error>;

/// All parts, with what each reads.
const PARTS: [(&str, Part); 8] = [
    ("the pages", damaged_pages),
    ("the heads of sessions", gaps),
    ("the events", changed),
    ("the list rows", damaged_rows),
    ("the rows with checksums", damaged_entries),
    ("the events of sessions", orphans),
    ("the blobs", changed_blobs),
    ("the files of blobs", changed_files),
];

pub(crate) fn check(reader: &Connection, files: &BlobFiles) -> Result<Integrity, Error> {
    let mut problems = Vec::new();
    for (what, part) in PARTS {
        match part(reader, files, &mut problems) {
            Err(error) if salvage::is_damage(&error) => {
                let error = StoreError::from(error);
                problems.push(format!("cannot read {what} to their end: {error}"));
            }
            done => done?,
        }
    }
    let events = reader.query_row("SELECT count(*) FROM event", [], |row| row.get(0));
    let events = match events {
        Err(error) if salvage::is_damaged_page(&error) => 0,
        events => size(events?),
    };
    Ok(Integrity {
        problems,
        sessions: crate::queries::count(reader)?,
        events,
        ..Integrity::default()
    })
}

fn damaged_pages(reader: &Connection, _: &BlobFiles, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut damage = reader.prepare("PRAGMA quick_check(20)")?;
    for problem in damage.query_map([], |row| row.get::<_, String>(0))? {
        let problem = problem?;
        if problem != "ok" {
            problems.push(problem);
        }
    }
    Ok(())
}

fn gaps(reader: &Connection, _: &BlobFiles, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut gaps = reader.prepare(GAPS)?;
    let gaps = gaps.query_map([], |row| {
        let (uid, head): (String, i64) = (row.get(0)?, row.get(1)?);
        let (events, newest): (i64, i64) = (row.get(2)?, row.get(3)?);
        Ok(problem::gap(&uid, head, events, newest))
    })?;
    for problem in gaps {
        problems.push(problem?);
    }
    Ok(())
}

fn orphans(reader: &Connection, _: &BlobFiles, problems: &mut Vec<String>) -> Result<(), Error> {
    let orphans = "SELECT count(*) FROM event WHERE session_id NOT IN (SELECT id FROM session)";
    let orphans: i64 = reader.query_row(orphans, [], |row| row.get(0))?;
    if orphans > 0 {
        problems.push(problem::orphans(orphans));
    }
    Ok(())
}

fn changed_files(reader: &Connection, files: &BlobFiles, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut in_files = reader.prepare("SELECT name FROM blob WHERE bytes IS NULL")?;
    for name in in_files.query_map([], |row| row.get::<_, String>(0))? {
        let name = name?;
        match files.get(&name) {
            Ok(None) => problems.push(format!("the file of blob {name} is missing")),
            Ok(Some(bytes)) if name_of(&bytes) != name => problems.push(problem::blob(&name)),
            Ok(Some(_)) => {}
            Err(error) => problems.push(format!("blob {name}: {error}")),
        }
    }
    Ok(())
}

/// Rows that do not match their checksums.
fn damaged_entries(reader: &Connection, _: &BlobFiles, problems: &mut Vec<String>) -> Result<(), Error> {
    for of in SUMS {
        let (name, whole) = (of.name_sql(), row_sum::whole(of));
        let sql = format!(
            "SELECT coalesce({name}, '') FROM {} WHERE NOT {whole} LIMIT {}",
            of.table,
            problem::MOST
        );
        let mut rows = reader.prepare(&sql)?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let name = String::from_utf8_lossy(row.get_ref(0)?.as_bytes().unwrap_or_default()).into_owned();
            problems.push(match of.table {
                "session" => problem::aside(&name),
                _ => problem::entry(of, &name),
            });
        }
    }
    Ok(())
}

/// List rows that differ from what their owners wrote, or that this build cannot read.
fn damaged_rows(reader: &Connection, _: &BlobFiles, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut rows = reader.prepare(&format!(
        "SELECT uid, {WHOLE}, summary FROM session WHERE {LISTED}"
    ))?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let readable = row
            .get_ref(2)?
            .as_bytes()
            .is_ok_and(|json| serde_json::from_slice::<Summary>(json).is_ok());
        if row.get::<_, bool>(1)? && readable {
            continue;
        }
        let uid: String = row.get(0)?;
        problems.push(problem::row(&uid));
        if problems.len() >= problem::MOST {
            break;
        }
    }
    Ok(())
}

/// Finds blobs whose content does not match their name, the SHA-256.
fn changed_blobs(reader: &Connection, _: &BlobFiles, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut blobs = reader.prepare("SELECT name, bytes FROM blob WHERE bytes IS NOT NULL")?;
    let mut rows = blobs.query([])?;
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(1)?.as_bytes().unwrap_or_default();
        if name_of(bytes) == row.get_ref(0)?.as_str().unwrap_or_default() {
            continue;
        }
        problems.push(problem::blob(&row.get::<_, String>(0)?));
        if problems.len() >= problem::MOST {
            break;
        }
    }
    Ok(())
}

/// Lines that differ from what was written.
fn changed(reader: &Connection, _: &BlobFiles, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut lines = reader.prepare(&format!(
        "SELECT uid, seq FROM event JOIN session ON session.id = session_id WHERE NOT {WHOLE_EVENT}"
    ))?;
    let mut rows = lines.query([])?;
    while let Some(row) = rows.next()? {
        let (uid, seq): (String, i64) = (row.get(0)?, row.get(1)?);
        problems.push(problem::line(&uid, seq));
        if problems.len() >= problem::MOST {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
