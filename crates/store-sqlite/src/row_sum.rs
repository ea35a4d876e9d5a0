//! The checksum of a list row as an SQL function.

use agentd_store::backend::{Column, RowSum};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;

/// SQL that checks whether a row matches its checksum; the columns are those of
/// [`RowColumns`](agentd_store::backend::RowColumns).
pub(crate) const WHOLE: &str = "(row_sum IS NULL OR row_sum = agentd_row_sum(uid, name, state, closed, labels, resumable, wake_at_ms, summary))";

/// The number of columns in the checksum.
const COLUMNS: i32 = 8;

/// Registers the SQL function `agentd_row_sum`.
pub(crate) fn define(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("agentd_row_sum", COLUMNS, flags, |context| {
        let mut sum = RowSum::default();
        for index in 0..context.len() {
            sum.add(column(context.get_raw(index)));
        }
        Ok(sum.finish())
    })
}

const fn column(value: ValueRef<'_>) -> Column<'_> {
    match value {
        ValueRef::Null => Column::Null,
        ValueRef::Integer(number) => Column::Integer(number),
        ValueRef::Real(number) => Column::Real(number),
        ValueRef::Text(bytes) => Column::Text(bytes),
        ValueRef::Blob(bytes) => Column::Blob(bytes),
    }
}

#[cfg(test)]
mod tests;
