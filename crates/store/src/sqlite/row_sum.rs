//! The sum of a list row: what a person sees of a session, and what decides whether it goes on by itself after a restart.
//! A damaged row is found before it is believed, and costs nobody but its session (I6).

use crate::Row;
use agentd_protocol::{RunState, SessionId, Status, Summary, Timestamp};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;

/// Whether a row is what its owner wrote, as SQL. Epoch and head change without a new row, so they are not in the sum.
pub(super) const WHOLE: &str = "(row_sum IS NULL OR row_sum = agentd_row_sum(uid, name, state, closed, labels, resumable, wake_at_ms, summary))";

/// How many columns the sum is made of.
const COLUMNS: i32 = 8;

/// Teaches a connection the function `agentd_row_sum`: the CRC-32 of the columns, each with its type and length.
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

/// What lists show in place of a row that cannot be believed, until its session is loaded and writes it anew.
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
