//! The tables, their versions, and the setup of connections.

use crate::error::Error;
use crate::files::LOG_LIMIT;
use crate::{order, row_sum};
use agentd_store::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// The application id that marks the file as ours: "agtd".
const APPLICATION_ID: i64 = 0x6167_7464;

/// One migration per version, applied in order, each in its own transaction. Never change a released migration.
const MIGRATIONS: [&str; 8] = [V1, V2, V3, V4, V5, V6, V7, V8];

// A rowid table with UNIQUE(session_id, seq) needs a quarter of a clustered table's writes. No index of `session` covers
// columns that change with every append. The purge keeps the event with the highest cursor, so no cursor is reused.
// No build writes `snapshot` any more.
const V1: &str = "
CREATE TABLE session(
  id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE,
  owner INTEGER,
  epoch INTEGER NOT NULL,
  head INTEGER NOT NULL,
  last_append BLOB NOT NULL,
  name TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT '',
  closed INTEGER NOT NULL DEFAULT 0,
  labels TEXT NOT NULL DEFAULT '{}',
  resumable INTEGER NOT NULL DEFAULT 0,
  wake_at_ms INTEGER,
  summary TEXT,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  deleted_ms INTEGER) STRICT;
CREATE TABLE event(
  cursor INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  append_id BLOB,
  body TEXT NOT NULL,
  UNIQUE(session_id, seq)) STRICT;
CREATE TABLE blob(
  name TEXT PRIMARY KEY,
  bytes BLOB) STRICT;
CREATE TABLE blob_use(
  name TEXT NOT NULL,
  session_id INTEGER NOT NULL,
  PRIMARY KEY(name, session_id)) STRICT, WITHOUT ROWID;
CREATE INDEX blob_use_session ON blob_use(session_id);
CREATE TABLE idempotency(
  principal TEXT NOT NULL,
  key TEXT NOT NULL,
  method TEXT NOT NULL,
  body_hash BLOB NOT NULL,
  answer TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  UNIQUE(principal, key)) STRICT;
CREATE TABLE snapshot(
  session_id INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  format INTEGER NOT NULL,
  bytes BLOB NOT NULL) STRICT;
CREATE TABLE charge(
  account TEXT PRIMARY KEY,
  tokens INTEGER NOT NULL,
  micro_usd INTEGER NOT NULL) STRICT;
CREATE TABLE node(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  expires_ms INTEGER NOT NULL) STRICT;
";

// What deleted sessions spent; sessions that still have tombstones count from the start.
const V2: &str = "
CREATE TABLE spent(
  model TEXT NOT NULL,
  labels TEXT NOT NULL,
  sessions INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  reasoning INTEGER NOT NULL,
  usd REAL NOT NULL,
  PRIMARY KEY(model, labels)) STRICT;
INSERT INTO spent
  SELECT coalesce(summary ->> '$.model', ''), labels, count(*), total(summary ->> '$.steps'),
    total(summary ->> '$.usage.input'), total(summary ->> '$.usage.output'), total(summary ->> '$.usage.cache_read'),
    total(summary ->> '$.usage.cache_write'), total(summary ->> '$.usage.reasoning'), total(summary ->> '$.cost_usd')
  FROM session WHERE deleted_ms IS NOT NULL AND json_valid(summary) GROUP BY 1, 2;
";

// Older lines have no checksum, and are not checked.
const V3: &str = "ALTER TABLE event ADD COLUMN sum INTEGER;";

// Older rows have no checksum until their session writes again.
const V4: &str = "ALTER TABLE session ADD COLUMN row_sum INTEGER;";

// The tokens of programs and people, by their hashes.
const V5: &str = "
CREATE TABLE token(
  name TEXT PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  labels TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  expires_ms INTEGER,
  used_ms INTEGER,
  revoked_ms INTEGER) STRICT;
";

// Cache writes for an hour are billed apart.
const V6: &str = "ALTER TABLE spent ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;";

// Where and how the sessions of a token may work. A token of an earlier version has no rights until the daemon settles them.
const V7: &str = "ALTER TABLE token ADD COLUMN rights TEXT;";

// Every row that decides something has a checksum (`agentd_store::backend::cell_sum`). Damage in an older row stays
// unnoticed.
const V8: &str = "
ALTER TABLE session ADD COLUMN own_sum INTEGER;
ALTER TABLE session ADD COLUMN head_sum INTEGER;
UPDATE session SET own_sum = agentd_sum(uid, epoch, created_ms, deleted_ms),
  head_sum = agentd_sum(uid, head, last_append, updated_ms),
  row_sum = coalesce(row_sum, iif(summary IS NULL, NULL,
    agentd_row_sum(uid, name, state, closed, labels, resumable, wake_at_ms, summary)));
ALTER TABLE blob_use ADD COLUMN sum INTEGER;
UPDATE blob_use SET sum = agentd_sum(name, session_id);
ALTER TABLE idempotency ADD COLUMN sum INTEGER;
UPDATE idempotency SET sum = agentd_sum(principal, key, method, body_hash, answer, at_ms);
ALTER TABLE charge ADD COLUMN sum INTEGER;
UPDATE charge SET sum = agentd_sum(account, tokens, micro_usd);
ALTER TABLE spent ADD COLUMN sum INTEGER;
UPDATE spent SET sum = agentd_sum(model, labels, sessions, steps, input, output, cache_read, cache_write,
  cache_write_1h, reasoning, usd);
ALTER TABLE token ADD COLUMN sum INTEGER;
UPDATE token SET sum = agentd_sum(name, hash, scopes, labels, created_ms, created_by, expires_ms, used_ms,
  revoked_ms, rights);
";

/// Opens the only write connection, and migrates the schema.
pub(crate) fn open_writer(file: &Path, max_bytes: u64) -> Result<Connection, Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut writer = Connection::open_with_flags(file, flags)?;
    writer.busy_timeout(Duration::from_secs(5))?;
    row_sum::define(&writer)?;
    keep_plans(&writer)?;
    writer.set_prepared_statement_cache_capacity(64);
    check_ours(&writer, file)?;
    // Checked before any setting changes the file.
    known_version(&writer, &MIGRATIONS)?;
    writer.execute_batch(&format!(
        "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=1000; PRAGMA cache_size=-8192;
         PRAGMA foreign_keys=ON; PRAGMA journal_size_limit={LOG_LIMIT};"
    ))?;
    // Affects new files only: an older file keeps its free pages until it is rewritten as a whole.
    writer.execute_batch("PRAGMA auto_vacuum=INCREMENTAL;")?;
    write_ahead(&writer, file)?;
    write_back(&writer)?;
    if max_bytes > 0 {
        let page: i64 = writer.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let pages = i64::try_from(max_bytes).unwrap_or(i64::MAX) / page.max(1);
        writer.query_row(&format!("PRAGMA max_page_count={}", pages.max(1)), [], |_| Ok(()))?;
    }
    migrate(&mut writer, &MIGRATIONS)?;
    Ok(writer)
}

/// Refuses a disk that cannot hold a write-ahead log: SQLite would fall back to a rollback journal, which loses the
/// last commit on a power loss. SQLite reports this in the result, or as an error *after* the result, when it commits
/// the change of mode. So this runs the pragma to its end, then queries it again.
fn write_ahead(writer: &Connection, file: &Path) -> Result<(), Error> {
    let mut change = writer.prepare("PRAGMA journal_mode=WAL")?;
    let mut answers = change.query([])?;
    while answers.next()?.is_some() {}
    let mode: String = writer.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode == "wal" {
        return Ok(());
    }
    let path = file.to_owned();
    Err(StoreError::NoWriteAhead { path, mode }.into())
}

/// Starts with an empty log. A failed sync in an earlier process may have left a hole in the log that only a power loss
/// reveals, and everything after a hole is lost. So this writes all readable content into the database again.
fn write_back(writer: &Connection) -> Result<(), Error> {
    let mut back = writer.prepare("PRAGMA wal_checkpoint(TRUNCATE)")?;
    let mut answers = back.query([])?;
    while answers.next()?.is_some() {}
    Ok(())
}

/// Without this, SQLite prepares a statement again for each new value of a parameter that could change its plan.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map(drop)
}

/// Opens a read-only connection.
pub(crate) fn open_reader(file: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reader = Connection::open_with_flags(file, flags)?;
    reader.busy_timeout(Duration::from_secs(5))?;
    row_sum::define(&reader)?;
    order::define(&reader)?;
    keep_plans(&reader)?;
    reader.set_prepared_statement_cache_capacity(32);
    reader.execute_batch("PRAGMA cache_size=-2048; PRAGMA query_only=ON;")?;
    Ok(reader)
}

fn check_ours(connection: &Connection, file: &Path) -> Result<(), Error> {
    let foreign = || {
        let path = file.to_owned();
        Error::from(StoreError::Foreign { path })
    };
    let id: i64 = connection
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(|error| {
            if is_not_a_database(&error) {
                foreign()
            } else {
                error.into()
            }
        })?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (id, tables) {
        (APPLICATION_ID, _) | (0, 0) => Ok(()),
        _ => Err(foreign()),
    }
}

fn is_not_a_database(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase)
}

/// The schema version of the file, unless it is newer than these migrations.
fn known_version(connection: &Connection, steps: &[&str]) -> Result<i64, Error> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(StoreError::NewerVersion { found, known }.into());
    }
    Ok(found)
}

/// Applies the migrations that the file lacks. Refuses a file with more migrations than we know, and leaves it unchanged.
pub(crate) fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), Error> {
    let found = known_version(connection, steps)?;
    for (version, step) in (1_i64..).zip(steps).filter(|(version, _)| *version > found) {
        let tx = connection.transaction()?;
        tx.execute_batch(step)?;
        tx.execute_batch(&format!(
            "PRAGMA user_version={version}; PRAGMA application_id={APPLICATION_ID};"
        ))?;
        tx.commit()?;
    }
    Ok(())
}
