//! The checksum of a list row, which holds what users see of a session and whether it resumes by itself after a
//! restart. The store detects a damaged row before using it, and the damage affects only that session (I6).

use crate::Row;
use agentd_protocol::{RunState, SessionId, Status, Summary, Timestamp};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;

/// SQL that checks whether a row matches its checksum. Epoch and head change without a new row, so it excludes them.
pub(super) const WHOLE: &str = "(row_sum IS NULL OR row_sum = agentd_row_sum(uid, name, state, closed, labels, resumable, wake_at_ms, summary))";

/// The number of columns in the checksum.
const COLUMNS: i32 = 8;

/// Registers the SQL function `agentd_row_sum`: the CRC-32 of the columns, each with its type and length.
pub(super) fn define(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("agentd_row_sum", COLUMNS, flags, |context| {
        let mut sum = crc32fast::Hasher::new();
        for index in 0..context.len() {
            add(&mut sum, context.get_raw(index));
        }
        Ok(i64::from(sum.finalize()))
    })
}

fn add(sum: &mut crc32fast::Hasher, value: ValueRef<'_>) {
    let (kind, bytes): (u8, &[u8]) = match value {
        ValueRef::Null => (0, &[]),
        ValueRef::Integer(number) => return add_fixed(sum, 1, number.to_be_bytes()),
        ValueRef::Real(number) => return add_fixed(sum, 2, number.to_be_bytes()),
        ValueRef::Text(bytes) => (3, bytes),
        ValueRef::Blob(bytes) => (4, bytes),
    };
    sum.update(&[kind]);
    sum.update(&bytes.len().to_be_bytes());
    sum.update(bytes);
}

fn add_fixed(sum: &mut crc32fast::Hasher, kind: u8, bytes: [u8; 8]) {
    sum.update(&[kind]);
    sum.update(&bytes);
}

/// What lists show for a damaged row, until its session is loaded and rewrites it.
pub(super) fn stand_in(session: SessionId, epoch: u64, head: u64) -> Row {
    let reason = "its list row is damaged and is rebuilt from its log";
    let status = Status::new(RunState::Faulted, reason, Timestamp(0));
    Row {
        summary: Summary {
            seq: head,
            ..Summary::new(session, status)
        },
        epoch,
        head,
        damaged: true,
    }
}

#[cfg(test)]
mod tests;
