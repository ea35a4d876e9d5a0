//! The checksums of rows as SQL: functions that compute them, and the conditions that compare them.

use agentd_store::EventColumns;
use agentd_store::backend::{CellSum, Column, RowSum, Summed};
use agentd_store::cell_sum::{SESSION_HEAD, SESSION_OWN};
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use std::sync::LazyLock;

/// SQL that checks whether a row matches its checksum; the columns are those of
/// [`RowColumns`](agentd_store::backend::RowColumns).
pub(crate) const WHOLE: &str = "(session.summary IS NULL AND session.row_sum IS NULL AND session.state = '' \
  OR session.row_sum IS agentd_row_sum(session.uid, session.name, session.state, \
  session.closed, session.labels, session.resumable, session.wake_at_ms, session.summary))";

/// SQL that checks whether a session has a list row: one that is being imported has none yet. A damaged row without a summary
/// is one.
pub(crate) const LISTED: &str =
    "(session.summary IS NOT NULL OR session.row_sum IS NOT NULL OR session.state <> '')";

/// SQL that checks whether an event, joined with its session, matches its checksum.
pub(crate) const WHOLE_EVENT: &str =
    "agentd_event_whole(uid, cursor, seq, event.epoch, at_ms, kind, append_id, body, sum)";

/// The number of columns in the checksum of a list row.
const COLUMNS: i32 = 8;

/// The number of columns that [`WHOLE_EVENT`] reads.
const OF_EVENT: i32 = 9;

/// Registers the SQL functions `agentd_row_sum`, `agentd_sum` and `agentd_event_whole`.
pub(crate) fn define(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("agentd_row_sum", COLUMNS, flags, |context| {
        let mut sum = RowSum::default();
        for index in 0..context.len() {
            sum.add(column(context.get_raw(index)));
        }
        Ok(sum.finish())
    })?;
    connection.create_scalar_function("agentd_sum", -1, flags, |context| {
        let mut sum = CellSum::default();
        for index in 0..context.len() {
            sum.add(column(context.get_raw(index)));
        }
        Ok(sum.finish())
    })?;
    connection.create_scalar_function("agentd_event_whole", OF_EVENT, flags, |context| {
        Ok(is_whole(context).unwrap_or(false))
    })
}

/// A column of another type than it had is damage, too.
fn is_whole(context: &Context<'_>) -> rusqlite::Result<bool> {
    let number = |index| context.get::<i64>(index);
    let event = EventColumns {
        uid: context.get_raw(0).as_str().unwrap_or_default(),
        cursor: number(1)?,
        seq: number(2)?,
        epoch: number(3)?,
        at_ms: number(4)?,
        kind: context.get_raw(5).as_str().unwrap_or_default(),
        append_id: match context.get_raw(6) {
            ValueRef::Blob(bytes) => Some(bytes),
            _ => None,
        },
        body: context.get_raw(7).as_bytes().unwrap_or_default(),
    };
    Ok(event.is_whole(context.get(8)?))
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

/// SQL for the checksum of a row in which these columns have other values, given as SQL.
pub(crate) fn sum(of: &Summed, set: &[(&str, &str)]) -> String {
    let column = |name: &&str| {
        let given = set.iter().find(|(column, _)| column == name);
        given.map_or_else(|| format!("{}.{name}", of.table), |(_, sql)| (*sql).to_owned())
    };
    let columns: Vec<String> = of.columns.iter().map(column).collect();
    format!("agentd_sum({})", columns.join(", "))
}

/// SQL that checks whether a row matches its checksum.
pub(crate) fn whole(of: &Summed) -> String {
    format!("({}.{} IS {})", of.table, of.sum, sum(of, &[]))
}

/// SQL for the new checksum of a row in which these columns change. A damaged row stays damaged.
pub(crate) fn kept(of: &Summed, set: &[(&str, &str)]) -> String {
    let (whole, changed) = (whole(of), sum(of, set));
    format!(
        "CASE WHEN {whole} THEN {changed} ELSE {}.{} END",
        of.table, of.sum
    )
}

/// SQL that checks what places a session and its log: without it, the session is set aside.
pub(crate) static PLACED: LazyLock<String> =
    LazyLock::new(|| format!("({} AND {})", whole(&SESSION_OWN), whole(&SESSION_HEAD)));

/// SQL that checks whether a session exists: a damaged row is no proof that it was deleted.
pub(crate) static LIVE: LazyLock<String> =
    LazyLock::new(|| format!("(deleted_ms IS NULL OR NOT {})", whole(&SESSION_OWN)));

#[cfg(test)]
mod tests;
