//! The migration: what it is given, its steps, and its result.

use crate::canonical::canonical;
use crate::sums::{Sum, Sums, each};
use agentd_store::parts::{BLOB_USE, Cell, Cells, Facts, Limits, Mark, Parts, SESSION, TABLES, Table};
use agentd_store::{Backend, StoreError};
use bytes::Bytes;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A result names at most this many blobs that the source lacks.
const NAMED: usize = 100;

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

fn parts(of: &dyn Backend) -> Result<&dyn Parts, StoreError> {
    let none = || {
        StoreError::Migration(
            "a store in memory has nothing to copy; give sqlite:FILE or postgres://...".to_owned(),
        )
    };
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
            return Err(StoreError::Migration(format!(
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

/// Where the migration continues.
fn accepted(migration: &Migration<'_>, source: &Facts, found: &Facts) -> Result<Mark, StoreError> {
    match &found.mark {
        Some(mark) if mark.state == source.state => Ok(mark.clone()),
        Some(mark) => Err(StoreError::Migration(format!(
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
            Err(StoreError::Migration(format!(
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
            return Err(StoreError::Migration(format!(
                "blob {name} differs: the destination lacks it"
            )));
        }
        if problems.len() < NAMED {
            problems.push(format!(
                "blob {name} was already missing or damaged in the source"
            ));
        }
    }
    Ok((source.tables(), problems))
}
