//! The sums of a database, by which two are compared: one for each session, and one for each other table.

use crate::canonical::canonical;
use agentd_store::StoreError;
use agentd_store::backend::digits;
use agentd_store::parts::{Cell, Cells, EVENT, LOGS, Limits, Parts, SESSION, TABLES, Table};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// Rows, and a digest over all that is copied of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// The number of rows.
    pub rows: u64,
    /// The SHA-256 over them, in their order.
    pub sha256: String,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct OfSession {
    uid: String,
    head: i64,
    /// Over its list row.
    row: [u8; 32],
    events: u64,
    /// Over its events.
    log: [u8; 32],
}

/// The sums of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sums {
    sessions: BTreeMap<i64, OfSession>,
    tables: BTreeMap<&'static str, Sum>,
}

/// Adds a row, each cell with its type and length.
fn add(hash: &mut Sha256, row: &[Cell]) {
    for cell in row {
        let (kind, bytes): (u8, &[u8]) = match cell {
            Cell::Null => (0, &[]),
            Cell::Int(number) => (1, &number.to_be_bytes()),
            Cell::Real(number) => (2, &number.to_be_bytes()),
            Cell::Text(text) => (3, text.as_bytes()),
            Cell::Bytes(bytes) => (4, bytes),
        };
        hash.update([kind]);
        hash.update(bytes.len().to_be_bytes());
        hash.update(bytes);
    }
}

fn number(row: &[Cell], place: usize) -> i64 {
    match row.get(place) {
        Some(Cell::Int(number)) => *number,
        _ => 0,
    }
}

/// Calls `take` with each row of a table, in the common form.
pub(crate) async fn each(
    side: &dyn Parts,
    table: &'static Table,
    limits: Limits,
    mut take: impl FnMut(Cells) + Send,
) -> Result<(), StoreError> {
    let mut after = Vec::new();
    loop {
        let rows = side.page(table, after, limits).await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = table.key_of(last);
        for mut row in rows {
            canonical(table, &mut row);
            take(row);
        }
    }
}

/// Whether [`Sums`] has a table session by session.
fn is_of_sessions(table: &Table) -> bool {
    table.name == SESSION.name || table.name == EVENT.name
}

impl Sums {
    /// Reads everything but blobs, which have their sums as names.
    pub(crate) async fn of(side: &dyn Parts, limits: Limits) -> Result<Self, StoreError> {
        let mut sessions: BTreeMap<i64, OfSession> = BTreeMap::new();
        each(side, &SESSION, limits, |row| {
            let mut hash = Sha256::new();
            add(&mut hash, &row);
            let entry = OfSession {
                uid: match row.get(SESSION.place("uid")) {
                    Some(Cell::Text(uid)) => uid.clone(),
                    _ => String::new(),
                },
                head: number(&row, SESSION.place("head")),
                row: hash.finalize().into(),
                ..OfSession::default()
            };
            sessions.insert(number(&row, SESSION.place("id")), entry);
        })
        .await?;
        let (mut log, mut of) = (Sha256::new(), None);
        each(side, &LOGS, limits, |row| {
            let id = number(&row, LOGS.place("session_id"));
            if of != Some(id) {
                end(&mut sessions, of, &mut log);
                of = Some(id);
            }
            // An event without a session counts, too.
            sessions.entry(id).or_default().events += 1;
            add(&mut log, &row);
        })
        .await?;
        end(&mut sessions, of, &mut log);
        let mut tables = BTreeMap::new();
        for table in TABLES.into_iter().filter(|table| !is_of_sessions(table)) {
            let (mut hash, mut rows) = (Sha256::new(), 0);
            each(side, table, limits, |row| {
                rows += 1;
                add(&mut hash, &row);
            })
            .await?;
            tables.insert(table.name, sum(rows, hash));
        }
        Ok(Self { sessions, tables })
    }

    /// The sums for the caller, with sessions and events as tables.
    pub(crate) fn tables(&self) -> BTreeMap<&'static str, Sum> {
        let mut tables = self.tables.clone();
        let (mut rows, mut logs, mut events) = (Sha256::new(), Sha256::new(), 0);
        for session in self.sessions.values() {
            rows.update(session.row);
            logs.update(session.log);
            events += session.events;
        }
        let sessions = self.sessions.values().filter(|session| !session.uid.is_empty());
        tables.insert("session", sum(sessions.count() as u64, rows));
        tables.insert("event", sum(events, logs));
        tables
    }

    /// Refuses a copy that differs, with the first session or table that does.
    pub(crate) fn compare(&self, copy: &Self) -> Result<(), StoreError> {
        let ids = self.sessions.keys().chain(copy.sessions.keys());
        for id in ids {
            let (source, copied) = (self.sessions.get(id), copy.sessions.get(id));
            if source != copied {
                let uid = source.or(copied).map_or("", |session| session.uid.as_str());
                let side = |session: Option<&OfSession>| session.map_or("no session".to_owned(), told);
                return Err(StoreError::Migration(format!(
                    "session {uid} differs: the source has {}, the destination {}",
                    side(source),
                    side(copied)
                )));
            }
        }
        for (table, sum) in &self.tables {
            let copied = copy.tables.get(table);
            if copied != Some(sum) {
                let copied = copied.map_or("nothing".to_owned(), Sum::to_string);
                return Err(StoreError::Migration(format!(
                    "the table {table} differs: the source has {sum}, the destination {copied}"
                )));
            }
        }
        Ok(())
    }
}

/// Ends the log of a session.
fn end(sessions: &mut BTreeMap<i64, OfSession>, of: Option<i64>, log: &mut Sha256) {
    if let Some(id) = of {
        sessions.entry(id).or_default().log = log.finalize_reset().into();
    }
}

fn told(session: &OfSession) -> String {
    format!(
        "{} events up to {} (list row {}, events {})",
        session.events,
        session.head,
        short(&session.row),
        short(&session.log)
    )
}

fn sum(rows: u64, hash: Sha256) -> Sum {
    Sum {
        rows,
        sha256: digits(&hash.finalize()),
    }
}

fn short(digest: &[u8]) -> String {
    digits(digest.get(..4).unwrap_or_default())
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = self.sha256.get(..8).unwrap_or_default();
        write!(f, "{} rows ({short})", self.rows)
    }
}
