//! The checksums of rows that decide something: who may do what, what was answered, what was spent, where a log ends.
//! Both backends sum the same columns in the same way, so that a migration copies the sums with the rows.
//!
//! The sum of a row is the start of the SHA-256 of its columns as a JSON array of texts. A database server can compute
//! it, too: columns such as counters change there.

use crate::row_sum::Column;
use crate::values::column as number;
use agentd_protocol::{SessionId, Timestamp};
use sha2::{Digest as _, Sha256};
use std::io::{self, Write as _};

/// A checksum of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Summed {
    /// The table.
    pub table: &'static str,
    /// The column of the sum.
    pub sum: &'static str,
    /// The summed columns, in their order.
    pub columns: &'static [&'static str],
    /// The columns that tell people which row it is.
    named_by: &'static [&'static str],
}

impl Summed {
    /// SQL for the name of a row.
    #[must_use]
    pub fn name_sql(&self) -> String {
        let named = self
            .named_by
            .iter()
            .map(|column| format!("CAST({column} AS text)"));
        named.collect::<Vec<String>>().join(" || ' ' || ")
    }
}

/// What places a session: its id, its fencing number, and whether it exists.
pub static SESSION_OWN: Summed = Summed {
    table: "session",
    sum: "own_sum",
    columns: &["uid", "epoch", "created_ms", "deleted_ms"],
    named_by: &["uid"],
};

/// Where the log of a session ends.
pub static SESSION_HEAD: Summed = Summed {
    table: "session",
    sum: "head_sum",
    columns: &["uid", "head", "last_append", "updated_ms"],
    named_by: &["uid"],
};

/// Which session keeps a blob, and so who may read it.
pub static BLOB_USE: Summed = Summed {
    table: "blob_use",
    sum: "sum",
    columns: &["name", "session_id"],
    named_by: &["name", "session_id"],
};

/// The answers of idempotency keys.
pub static IDEMPOTENCY: Summed = Summed {
    table: "idempotency",
    sum: "sum",
    columns: &["principal", "key", "method", "body_hash", "answer", "at_ms"],
    named_by: &["principal", "key"],
};

/// What accounts were charged.
pub static CHARGE: Summed = Summed {
    table: "charge",
    sum: "sum",
    columns: &["account", "tokens", "micro_usd"],
    named_by: &["account"],
};

/// What deleted sessions spent.
pub static SPENT: Summed = Summed {
    table: "spent",
    sum: "sum",
    columns: &[
        "model",
        "labels",
        "sessions",
        "steps",
        "input",
        "output",
        "cache_read",
        "cache_write",
        "cache_write_1h",
        "reasoning",
        "usd",
    ],
    named_by: &["model", "labels"],
};

/// Tokens with their rights.
pub static TOKEN: Summed = Summed {
    table: "token",
    sum: "sum",
    columns: &[
        "name",
        "hash",
        "scopes",
        "labels",
        "created_ms",
        "created_by",
        "expires_ms",
        "used_ms",
        "revoked_ms",
        "rights",
    ],
    named_by: &["name"],
};

/// All of them, but for the list row of a session ([`crate::backend::RowColumns`]) and for events
/// ([`crate::EventColumns`]).
pub static SUMS: [&Summed; 7] = [
    &SESSION_OWN,
    &SESSION_HEAD,
    &BLOB_USE,
    &IDEMPOTENCY,
    &CHARGE,
    &SPENT,
    &TOKEN,
];

/// Computes the checksum of a row, column by column. Lists compute it for each of their rows, so it builds one text.
#[derive(Debug)]
pub struct CellSum(Vec<u8>);

impl Default for CellSum {
    fn default() -> Self {
        // Most rows fit.
        Self(Vec::with_capacity(256))
    }
}

impl CellSum {
    /// Adds the next column.
    pub fn add(&mut self, column: Column<'_>) {
        let text = &mut self.0;
        text.push(if text.is_empty() { b'[' } else { b',' });
        // Writing to memory does not fail.
        let _ = match column {
            Column::Null => text.write_all(b"null"),
            Column::Integer(number) => write!(text, "\"{number}\""),
            Column::Real(number) => write!(text, "\"{:016x}\"", number.to_bits()),
            Column::Text(bytes) => {
                serde_json::to_writer(text, &String::from_utf8_lossy(bytes)).map_err(io::Error::from)
            }
            Column::Blob(bytes) => write!(text, "\"{}\"", crate::backend::digits(bytes)),
        };
    }

    /// The checksum as a column.
    #[must_use]
    pub fn finish(mut self) -> i64 {
        self.0.push(b']');
        let digest: [u8; 32] = Sha256::digest(self.0).into();
        digest.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
    }

    /// The checksum of these columns.
    #[must_use]
    pub fn of(columns: &[Column<'_>]) -> i64 {
        let mut sum = Self::default();
        columns.iter().for_each(|column| sum.add(*column));
        sum.finish()
    }
}

/// The columns of [`SESSION_OWN`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnColumns {
    /// The session's id as 32 hex digits.
    pub uid: String,
    /// The fencing number.
    pub epoch: i64,
    /// When it was created.
    pub created_ms: i64,
    /// When it was deleted.
    pub deleted_ms: Option<i64>,
}

impl OwnColumns {
    /// The checksum.
    #[must_use]
    pub fn sum(&self) -> i64 {
        CellSum::of(&[
            Column::text(&self.uid),
            Column::Integer(self.epoch),
            Column::Integer(self.created_ms),
            self.deleted_ms.map_or(Column::Null, Column::Integer),
        ])
    }

    /// The columns as they were before one of them changed, found by trying: the id that the log names, a session that
    /// was not deleted, and one bit of a number. The checksum tells which try is right.
    #[must_use]
    pub fn mended(&self, of_log: Option<SessionId>, sum: i64) -> Option<Self> {
        let named = of_log.map(|session| Self {
            uid: crate::values::hex(session),
            ..self.clone()
        });
        let alive = Self {
            deleted_ms: None,
            ..self.clone()
        };
        let bits = (0..i64::BITS).flat_map(|bit| {
            let flip = 1_i64 << bit;
            [
                Self {
                    epoch: self.epoch ^ flip,
                    ..self.clone()
                },
                Self {
                    created_ms: self.created_ms ^ flip,
                    ..self.clone()
                },
                Self {
                    deleted_ms: self.deleted_ms.map(|at| at ^ flip),
                    ..self.clone()
                },
            ]
        });
        // A bit of the checksum itself.
        if (self.sum() ^ sum).count_ones() == 1 {
            return Some(self.clone());
        }
        let mut tries = named.into_iter().chain([alive]).chain(bits);
        tries.find(|found| found.sum() == sum)
    }
}

/// The checksum of [`SESSION_HEAD`].
#[must_use]
pub fn head_sum(uid: &str, head: u64, last_append: &[u8], updated: Timestamp) -> i64 {
    CellSum::of(&[
        Column::text(uid),
        Column::Integer(number(head)),
        Column::Blob(last_append),
        Column::Integer(number(updated.0)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_column_counts_with_its_place() {
        let columns = [
            Column::Null,
            Column::Integer(7),
            Column::Real(0.5),
            Column::text("a\"b\u{1}ü"),
            Column::Blob(&[1, 255]),
            Column::text("07"),
        ];
        let mut sums = BTreeSet::from([CellSum::of(&columns)]);
        for place in 0..columns.len() {
            for other in [Column::text("x"), Column::Integer(8), Column::text("")] {
                let mut changed = columns;
                changed[place] = other;
                assert!(sums.insert(CellSum::of(&changed)), "{place} {other:?}");
            }
        }
        let mut text = CellSum::default();
        columns.iter().for_each(|column| text.add(*column));
        assert_eq!(
            String::from_utf8_lossy(&text.0),
            r#"[null,"7","3fe0000000000000","a\"b\u0001ü","01ff","07""#
        );
    }

    #[test]
    fn one_change_of_what_places_a_session_is_found_by_trying() {
        let session = SessionId::from_parts(77, [1; 10]);
        let whole = OwnColumns {
            uid: crate::values::hex(session),
            epoch: 3,
            created_ms: 1_763_629_200_000,
            deleted_ms: None,
        };
        let sum = whole.sum();
        let changes: [fn(&mut OwnColumns); 4] = [
            |own| own.uid.replace_range(5..6, "f"),
            |own| own.epoch ^= 1 << 40,
            |own| own.created_ms ^= 1 << 3,
            |own| own.deleted_ms = Some(9),
        ];
        for change in changes {
            let mut changed = whole.clone();
            change(&mut changed);
            assert_ne!(changed.sum(), sum);
            assert_eq!(changed.mended(Some(session), sum).as_ref(), Some(&whole));
        }
        assert_eq!(whole.mended(None, sum ^ 64).as_ref(), Some(&whole));
        let two = OwnColumns {
            epoch: 4,
            created_ms: 0,
            ..whole.clone()
        };
        assert_eq!(two.mended(Some(session), sum), None);
        let deleted = OwnColumns {
            deleted_ms: Some(1_763_629_300_000),
            ..whole
        };
        let wrong = OwnColumns {
            deleted_ms: Some(1_763_629_300_001),
            ..deleted.clone()
        };
        assert_eq!(wrong.mended(Some(session), deleted.sum()), Some(deleted));
    }
}
