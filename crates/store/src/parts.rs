//! A store as tables, while no daemon uses it: what a migration reads from one backend and writes into another.

mod table;

pub use table::{BLOB_USE, Cell, Cells, Column, EVENT, Kind, LOGS, Limits, SESSION, TABLES, Table};

use crate::StoreError;
use async_trait::async_trait;
use bytes::Bytes;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;

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

impl Facts {
    /// The number of rows of a table.
    #[must_use]
    pub fn rows_of(&self, table: &Table) -> u64 {
        self.rows.get(table.name).copied().unwrap_or_default()
    }
}
