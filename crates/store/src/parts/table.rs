//! The tables that a migration copies: their columns, which both backends have, their order, and the SQL over them.

use serde::{Deserialize, Serialize};

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A number.
    Int(i64),
    /// A sum of money.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A row, in the order of [`Table::columns`].
pub type Cells = Vec<Cell>;

/// The type of a column. SQLite stores each kind as its [`Cell`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Int,
    /// A number that is 0 or 1.
    Flag,
    /// A sum of money.
    Real,
    /// A text.
    Text,
    /// A text that is JSON, and that a backend may store parsed.
    Json,
    /// Bytes.
    Bytes,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
}

/// A table that both backends have.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns that are copied.
    pub columns: &'static [Column],
    /// The columns that order it: an index of both backends.
    key: &'static [&'static str],
    /// Which rows count.
    only: &'static str,
    /// SQL for the bytes of a row.
    weight: &'static str,
}

/// The most that a batch takes. It takes one row in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Rows.
    pub rows: u32,
    /// Bytes.
    pub bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rows: 500,
            bytes: 4 * 1024 * 1024,
        }
    }
}

macro_rules! columns {
    ($($name:ident $kind:ident,)*) => { &[$(Column { name: stringify!($name), kind: Kind::$kind },)*] };
}

const EVENT_COLUMNS: &[Column] = columns! {
    cursor Int, session_id Int, seq Int, epoch Int, at_ms Int, kind Text, append_id Bytes, body Text, sum Int,
};

/// The sessions with their list rows. The owner is not copied: no node uses a database at rest.
pub static SESSION: Table = Table {
    name: "session",
    columns: columns! {
        id Int, uid Text, epoch Int, head Int, last_append Bytes, name Text, state Text, closed Flag, labels Json,
        resumable Flag, wake_at_ms Int, summary Text, row_sum Int, created_ms Int, updated_ms Int, deleted_ms Int,
        own_sum Int, head_sum Int,
    },
    key: &["id"],
    only: "id > 0",
    weight: "512 + coalesce(octet_length(summary), 0)",
};

/// The events in the order of the fleet-wide stream.
pub static EVENT: Table = Table {
    name: "event",
    columns: EVENT_COLUMNS,
    key: &["cursor"],
    only: "session_id > 0",
    weight: "128 + octet_length(body)",
};

/// The events, log by log.
pub static LOGS: Table = Table {
    name: "event",
    columns: EVENT_COLUMNS,
    key: &["session_id", "seq"],
    only: "session_id > 0",
    weight: "128 + octet_length(body)",
};

/// Which session keeps which blob. The contents come with it.
pub static BLOB_USE: Table = Table {
    name: "blob_use",
    columns: columns! { name Text, session_id Int, sum Int, },
    key: &["name", "session_id"],
    only: "true",
    weight: "128",
};

static IDEMPOTENCY: Table = Table {
    name: "idempotency",
    columns: columns! { principal Text, key Text, method Text, body_hash Bytes, answer Text, at_ms Int, sum Int, },
    key: &["principal", "key"],
    only: "true",
    weight: "256 + octet_length(answer)",
};

static CHARGE: Table = Table {
    name: "charge",
    columns: columns! { account Text, tokens Int, micro_usd Int, sum Int, },
    key: &["account"],
    only: "true",
    weight: "128",
};

static SPENT: Table = Table {
    name: "spent",
    columns: columns! {
        model Text, labels Text, sessions Int, steps Int, input Int, output Int, cache_read Int, cache_write Int,
        cache_write_1h Int, reasoning Int, usd Real, sum Int,
    },
    key: &["model", "labels"],
    only: "true",
    weight: "256 + octet_length(labels)",
};

static TOKEN: Table = Table {
    name: "token",
    columns: columns! {
        name Text, hash Bytes, scopes Text, labels Text, created_ms Int, created_by Text, expires_ms Int, used_ms Int,
        revoked_ms Int, rights Text, sum Int,
    },
    key: &["name"],
    only: "true",
    weight: "512 + octet_length(labels)",
};

/// All tables, in the order of copying: sessions come before what refers to them.
pub static TABLES: [&Table; 7] = [&SESSION, &EVENT, &BLOB_USE, &IDEMPOTENCY, &CHARGE, &SPENT, &TOKEN];

impl Table {
    /// A query for the rows after a key, whose cells are the parameters. `read` is how a backend reads a column.
    #[must_use]
    pub fn page_sql(&self, begins: bool, limits: Limits, read: impl Fn(&Column) -> String) -> String {
        let key = self.key.join(", ");
        let columns: Vec<String> = self.columns.iter().map(read).collect();
        let places: Vec<String> = (1..=self.key.len()).map(|number| format!("${number}")).collect();
        let after = if begins {
            String::new()
        } else {
            format!("({key}) > ({}) AND ", places.join(", "))
        };
        format!(
            "SELECT {} FROM (SELECT *, coalesce(sum({}) OVER (ORDER BY {key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 \
               PRECEDING), 0) AS so_far FROM (SELECT * FROM {} WHERE {after}{} ORDER BY {key} LIMIT {}) AS next) AS page
             WHERE so_far < {} ORDER BY {key}",
            columns.join(", "),
            self.weight,
            self.name,
            self.only,
            limits.rows.max(1),
            limits.bytes.max(1),
        )
    }

    /// The number of rows.
    #[must_use]
    pub fn count_sql(&self) -> String {
        format!("SELECT count(*) FROM {} WHERE {}", self.name, self.only)
    }

    /// The names of the columns.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        names.join(", ")
    }

    /// The key of a row.
    #[must_use]
    pub fn key_of(&self, row: &[Cell]) -> Cells {
        let cell = |key: &&str| row.get(self.place(key)).cloned().unwrap_or(Cell::Null);
        self.key.iter().map(cell).collect()
    }

    /// The place of a column.
    #[must_use]
    pub fn place(&self, name: &str) -> usize {
        let place = self.columns.iter().position(|column| column.name == name);
        place.unwrap_or(usize::MAX)
    }
}
