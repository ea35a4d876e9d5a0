//! Copies a whole store from one backend into another: in batches, each with the note of how far it came in the same
//! transaction, so that an interrupted migration continues where it was.
//!
//! Invariants: I1, a destination opens for a daemon only after its sums equal those of the source; I2, cursors, seqs and
//! bytes stay, and a batch is written once.
//!
//! Flow: both at rest -> mark the destination -> batches -> sums of both -> remove the mark.

mod canonical;
mod sums;
mod table;

pub use sums::Sum;
pub use table::{BLOB_USE, Cell, Cells, Column, EVENT, Kind, LOGS, Limits, SESSION, TABLES, Table};

use crate::{Backend, StoreError};
use async_trait::async_trait;
use bytes::Bytes;
use canonical::canonical;
use serde::Serialize;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use sums::{Sums, each};

/// A result names at most this many blobs that the source lacks.
const NAMED: usize = 100;

/// How far a migration came. The destination keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The [`Facts::state`] of the source.
    pub state: String,
    /// The source, for people.
    pub origin: String,
    /// The table of the last batch.
    pub part: String,
    /// The key of its last row in the source, as JSON.
    pub place: String,
}

/// The state of a database at rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Equal only if no daemon used the database in between.
    pub state: String,
    /// The end of the fleet-wide stream.
    pub cursor: u64,
    /// The number of rows of each table.
    pub rows: BTreeMap<&'static str, u64>,
    /// It is the destination of an unfinished migration.
    pub mark: Option<Mark>,
}

/// Keeps daemons away until it is dropped.
pub type Held = Box<dyn Any + Send>;

/// A database as tables, while no daemon uses it.
#[async_trait]
pub trait Parts: Send + Sync + Debug {
    /// Refuses while a daemon uses the database. None can start to use it before the result is dropped.
    async fn hold(&self) -> Result<Held, StoreError>;
    /// The state of the database.
    async fn facts(&self) -> Result<Facts, StoreError>;
    /// The rows after a key, in the order of the table; an empty key is before all rows.
    async fn page(
        &self,
        table: &'static Table,
        after: Cells,
        limits: Limits,
    ) -> Result<Vec<Cells>, StoreError>;
    /// Marks the database as the destination of a migration, so that no daemon opens it.
    async fn begin(&self, mark: Mark) -> Result<(), StoreError>;
    /// Stores the content of a blob, which is there once a row of [`BLOB_USE`] names it.
    async fn put_content(&self, bytes: Bytes) -> Result<(), StoreError>;
    /// Writes rows and the mark in one transaction.
    async fn put(&self, table: &'static Table, rows: Vec<Cells>, mark: Mark) -> Result<(), StoreError>;
    /// Sets the end of the stream and the node that has the directories of the sessions, and removes the mark.
    async fn finish(&self, cursor: u64, node: Option<&str>) -> Result<(), StoreError>;
}

/// The task of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Copy, or continue to.
    Copy,
    /// Say what would be copied.
    DryRun,
    /// Compare the two.
    Verify,
}

/// A migration.
#[derive(Debug)]
pub struct Migration<'a> {
    /// The source.
    pub from: &'a dyn Backend,
    /// The destination.
    pub to: &'a dyn Backend,
    /// The source, for people.
    pub origin: String,
    /// The node on whose machine the directories of the sessions are, if the destination has nodes.
    pub node: Option<String>,
    /// The task.
    pub task: Task,
    /// The most that a batch takes.
    pub limits: Limits,
}

/// How far a migration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The table; none: both sides are being compared.
    pub table: Option<&'static str>,
    /// Rows that the destination has.
    pub done: u64,
    /// Rows that the source has.
    pub of: u64,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Migrated {
    /// The end of the fleet-wide stream.
    pub cursor: u64,
    /// Rows that this run copied, or would copy.
    pub copied: BTreeMap<&'static str, u64>,
    /// The sums of both sides, which are equal; empty after a dry run.
    pub sums: BTreeMap<&'static str, Sum>,
    /// Blobs that the source has lost, and that the destination therefore lacks.
    pub problems: Vec<String>,
}

/// A migration is not possible, or its result is wrong.
pub(crate) fn refusal(why: String) -> StoreError {
    StoreError::Migration(why)
}

fn parts(of: &dyn Backend) -> Result<&dyn Parts, StoreError> {
    let none =
        || refusal("a store in memory has nothing to copy; give sqlite:FILE or postgres://...".to_owned());
    of.parts().ok_or_else(none)
}

/// Copies a store, or compares two. Calls `tell` after each batch; its error ends the migration, which the next call
/// continues.
///
/// # Errors
/// A daemon uses one of the two; the destination holds other data; an error of a database; the two differ.
pub async fn migrate(
    migration: &Migration<'_>,
    tell: &mut (dyn FnMut(Progress) -> Result<(), StoreError> + Send),
) -> Result<Migrated, StoreError> {
    let (from, to) = (parts(migration.from)?, parts(migration.to)?);
    let _held = (from.hold().await?, to.hold().await?);
    let (source, found) = (from.facts().await?, to.facts().await?);
    let mut copied = BTreeMap::new();
    if migration.task != Task::Verify {
        let mark = accepted(migration, &source, &found)?;
        let left = |table: &&Table| source.rows_of(table).saturating_sub(found.rows_of(table));
        if migration.task == Task::DryRun {
            return Ok(Migrated {
                cursor: source.cursor,
                copied: TABLES
                    .into_iter()
                    .map(|table| (table.name, left(&table)))
                    .collect(),
                sums: BTreeMap::new(),
                problems: Vec::new(),
            });
        }
        if found.mark.is_none() {
            to.begin(mark.clone()).await?;
        }
        copied = copy(migration, (from, to), (&source, &found), mark, tell).await?;
    }
    tell(Progress {
        table: None,
        done: 0,
        of: 0,
    })?;
    let (sums, problems) = compare(migration, (from, to)).await?;
    match migration.task {
        Task::Copy => to.finish(source.cursor, migration.node.as_deref()).await?,
        _ if found.cursor != source.cursor => {
            let (source, found) = (source.cursor, found.cursor);
            return Err(refusal(format!(
                "the streams differ: the source ends at {source}, the destination at {found}"
            )));
        }
        _ => {}
    }
    Ok(Migrated {
        cursor: source.cursor,
        copied,
        sums,
        problems,
    })
}

impl Facts {
    fn rows_of(&self, table: &Table) -> u64 {
        self.rows.get(table.name).copied().unwrap_or_default()
    }
}

impl Table {
    /// Whether [`Sums`] has it session by session.
    fn is_of_sessions(&self) -> bool {
        self.name == SESSION.name || self.name == EVENT.name
    }
}

/// Where the migration continues.
fn accepted(migration: &Migration<'_>, source: &Facts, found: &Facts) -> Result<Mark, StoreError> {
    match &found.mark {
        Some(mark) if mark.state == source.state => Ok(mark.clone()),
        Some(mark) => Err(refusal(format!(
            "the destination has a part of {}, as that was when the migration began; the source is another one, or a \
             daemon used it since. Empty the destination (delete the file, or DROP SCHEMA agentd CASCADE) and begin anew",
            mark.origin
        ))),
        None if found.rows.values().all(|rows| *rows == 0) => Ok(Mark {
            state: source.state.clone(),
            origin: migration.origin.clone(),
            part: SESSION.name.to_owned(),
            place: "[]".to_owned(),
        }),
        None => {
            let held = found.rows.iter().filter(|(_, rows)| **rows > 0);
            let held: Vec<String> = held.map(|(table, rows)| format!("{rows} of {table}")).collect();
            Err(refusal(format!(
                "the destination holds other data ({}); name an empty database or a new file",
                held.join(", ")
            )))
        }
    }
}

/// Copies what the destination lacks. Returns the number of rows of each table.
async fn copy(
    migration: &Migration<'_>,
    (from, to): (&dyn Parts, &dyn Parts),
    (source, found): (&Facts, &Facts),
    mut mark: Mark,
    tell: &mut (dyn FnMut(Progress) -> Result<(), StoreError> + Send),
) -> Result<BTreeMap<&'static str, u64>, StoreError> {
    let mut copied = BTreeMap::new();
    let begun = |table: &&&Table| table.name != mark.part;
    let tables: Vec<&'static Table> = TABLES.iter().skip_while(begun).copied().collect();
    for table in tables {
        let mut after: Cells = match table.name == mark.part {
            true => serde_json::from_str(&mark.place)?,
            false => Vec::new(),
        };
        let (mut rows_copied, of) = (0, source.rows_of(table));
        loop {
            let mut rows = from.page(table, after, migration.limits).await?;
            let Some(last) = rows.last() else { break };
            after = table.key_of(last);
            table.name.clone_into(&mut mark.part);
            mark.place = serde_json::to_string(&after)?;
            rows.iter_mut().for_each(|row| canonical(table, row));
            if table.name == BLOB_USE.name {
                copy_contents(migration, to, &rows).await?;
            }
            rows_copied += rows.len() as u64;
            to.put(table, rows, mark.clone()).await?;
            let done = found.rows_of(table) + rows_copied;
            tell(Progress {
                table: Some(table.name),
                done,
                of,
            })?;
        }
        copied.insert(table.name, rows_copied);
    }
    Ok(copied)
}

/// The blobs that rows of [`BLOB_USE`] name.
fn named(rows: &[Cells]) -> BTreeSet<&str> {
    let names = rows.iter().filter_map(|row| match row.first() {
        Some(Cell::Text(name)) => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

/// Copies blobs, one at a time. The comparison reports those that the source has lost.
async fn copy_contents(migration: &Migration<'_>, to: &dyn Parts, rows: &[Cells]) -> Result<(), StoreError> {
    for name in named(rows) {
        match migration.from.blob(name).await {
            Ok(Some(bytes)) => to.put_content(bytes).await?,
            Ok(None) | Err(StoreError::DamagedBlob(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Compares both sides. Returns their sums, and what the source had lost before.
async fn compare(
    migration: &Migration<'_>,
    (from, to): (&dyn Parts, &dyn Parts),
) -> Result<(BTreeMap<&'static str, Sum>, Vec<String>), StoreError> {
    let (source, copied) =
        tokio::try_join!(Sums::of(from, migration.limits), Sums::of(to, migration.limits))?;
    source.compare(&copied)?;
    let mut names = BTreeSet::new();
    each(to, &BLOB_USE, migration.limits, |row| {
        names.extend(named(&[row]).into_iter().map(str::to_owned));
    })
    .await?;
    let mut problems = Vec::new();
    for name in names {
        let whole = |found: Result<Option<Bytes>, StoreError>| match found {
            Ok(found) => Ok(found.is_some()),
            Err(StoreError::DamagedBlob(_)) => Ok(false),
            Err(error) => Err(error),
        };
        // Reading a blob compares it with its name, the SHA-256.
        if whole(migration.to.blob(&name).await)? {
            continue;
        }
        if whole(migration.from.blob(&name).await)? {
            return Err(refusal(format!("blob {name} differs: the destination lacks it")));
        }
        if problems.len() < NAMED {
            problems.push(format!(
                "blob {name} was already missing or damaged in the source"
            ));
        }
    }
    Ok((source.tables(), problems))
}
