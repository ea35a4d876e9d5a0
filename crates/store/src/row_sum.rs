//! The checksum of a list row, which holds what users see of a session and whether it resumes by itself after a
//! restart. A backend detects a damaged row before using it, and the damage affects only that session (I6).

use crate::Row;
use agentd_protocol::{RunState, SessionId, Status, Summary, Timestamp};
use bytes::Bytes;

/// A column of a row.
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// Nothing.
    Null,
    /// A number.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// The bytes of a text.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

impl<'a> Column<'a> {
    /// A text.
    #[must_use]
    pub const fn text(text: &'a str) -> Self {
        Self::Text(text.as_bytes())
    }
}

/// The CRC-32 of columns, each with its type and length.
#[derive(Debug, Default)]
pub struct RowSum(crc32fast::Hasher);

impl RowSum {
    /// Adds the next column.
    pub fn add(&mut self, column: Column<'_>) {
        let (kind, bytes): (u8, &[u8]) = match column {
            Column::Null => (0, &[]),
            Column::Integer(number) => return self.add_fixed(1, number.to_be_bytes()),
            Column::Real(number) => return self.add_fixed(2, number.to_be_bytes()),
            Column::Text(bytes) => (3, bytes),
            Column::Blob(bytes) => (4, bytes),
        };
        self.0.update(&[kind]);
        self.0.update(&bytes.len().to_be_bytes());
        self.0.update(bytes);
    }

    fn add_fixed(&mut self, kind: u8, bytes: [u8; 8]) {
        self.0.update(&[kind]);
        self.0.update(&bytes);
    }

    /// The checksum as a column.
    #[must_use]
    pub fn finish(self) -> i64 {
        self.0.finalize().into()
    }
}

/// The columns in the checksum. Epoch and head change without a new row, so they are not among them.
#[derive(Debug, Clone, Copy)]
pub struct RowColumns<'a> {
    /// The session's id as 32 hex digits.
    pub uid: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its state.
    pub state: &'a str,
    /// Whether it is closed.
    pub closed: bool,
    /// Its labels as a JSON object.
    pub labels: &'a str,
    /// Whether it resumes by itself.
    pub resumable: bool,
    /// When it wakes.
    pub wake_at_ms: Option<i64>,
    /// The whole row as JSON.
    pub summary: &'a str,
}

impl RowColumns<'_> {
    /// The checksum.
    #[must_use]
    pub fn sum(&self) -> i64 {
        let mut sum = RowSum::default();
        for column in [
            Column::text(self.uid),
            Column::text(self.name),
            Column::text(self.state),
            Column::Integer(self.closed.into()),
            Column::text(self.labels),
            Column::Integer(self.resumable.into()),
            self.wake_at_ms.map_or(Column::Null, Column::Integer),
            Column::text(self.summary),
        ] {
            sum.add(column);
        }
        sum.finish()
    }
}

impl Row {
    /// Parses a stored row. `summary` absent: the row differs from what its owner wrote. An unreadable row affects its
    /// own session and no other (I6).
    #[must_use]
    pub fn stored(session: SessionId, epoch: u64, head: u64, summary: Option<&Bytes>) -> Self {
        match summary.and_then(|json| serde_json::from_slice(json).ok()) {
            Some(summary) => Self {
                summary,
                epoch,
                head,
                damaged: false,
            },
            None => Self::stand_in(
                session,
                (epoch, head),
                "its list row is damaged and is rebuilt from its log",
            ),
        }
    }

    /// A session that is set aside: what places it or its log is damaged, and its events do not tell how to mend it.
    #[must_use]
    pub fn aside(session: SessionId, epoch: u64, head: u64) -> Self {
        Self::stand_in(
            session,
            (epoch, head),
            "its row in the store is damaged, so it is set aside; restore it from a backup, or delete it",
        )
    }

    /// What lists show for a damaged row.
    fn stand_in(session: SessionId, (epoch, head): (u64, u64), reason: &str) -> Self {
        let status = Status::new(RunState::Faulted, reason, Timestamp(0));
        Self {
            summary: Summary {
                seq: head,
                ..Summary::new(session, status)
            },
            epoch,
            head,
            damaged: true,
        }
    }
}
