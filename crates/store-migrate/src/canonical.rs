//! The form of a row that both backends can store. Rows are compared and written in this form only.

use agentd_protocol::Labels;
use agentd_store::EncodedEvent;
use agentd_store::backend::{CellSum, Column, RowColumns, Summed};
use agentd_store::cell_sum::SUMS;
use agentd_store::parts::{Cell, SESSION, Table};

/// PostgreSQL has no NUL in a text.
fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Brings a row into the common form. A damaged row stays damaged: its checksum does not change.
pub(crate) fn canonical(table: &Table, row: &mut [Cell]) {
    match table.name {
        "event" => event(table, row),
        "session" => session(row),
        _ => {}
    }
    let sums = SUMS.iter().filter(|of| of.table == table.name);
    let whole: Vec<&Summed> = sums
        .filter(|of| stored(table, row, of) == summed(table, row, of))
        .copied()
        .collect();
    for cell in &mut *row {
        if let Cell::Text(text) = cell
            && text.contains('\0')
        {
            *text = clean(text);
        }
    }
    for of in whole {
        let sum = summed(table, row, of);
        if let Some(cell) = row.get_mut(table.place(of.sum)) {
            *cell = sum;
        }
    }
}

/// The checksum that a row has.
fn stored(table: &Table, row: &[Cell], of: &Summed) -> Cell {
    row.get(table.place(of.sum)).cloned().unwrap_or(Cell::Null)
}

/// The checksum that a row should have.
fn summed(table: &Table, row: &[Cell], of: &Summed) -> Cell {
    let mut sum = CellSum::default();
    for name in of.columns {
        sum.add(match row.get(table.place(name)) {
            Some(Cell::Int(number)) => Column::Integer(*number),
            Some(Cell::Real(number)) => Column::Real(*number),
            Some(Cell::Text(text)) => Column::text(text),
            Some(Cell::Bytes(bytes)) => Column::Blob(bytes),
            Some(Cell::Null) | None => Column::Null,
        });
    }
    Cell::Int(sum.finish())
}

/// Lines of early versions have no checksum, and PostgreSQL wants one.
fn event(table: &Table, row: &mut [Cell]) {
    let sum = match row.get(table.place("body")) {
        Some(Cell::Text(body)) => EncodedEvent::sum(body.as_bytes()).into(),
        _ => return,
    };
    if let Some(cell @ Cell::Null) = row.get_mut(table.place("sum")) {
        *cell = Cell::Int(sum);
    }
}

/// The labels in the form in which the checksum of a row contains them; and the checksum of the result.
fn session(row: &mut [Cell]) {
    let before = sum(row);
    let stored = match row.get(SESSION.place("row_sum")) {
        Some(Cell::Int(sum)) => Some(*sum),
        _ => None,
    };
    let whole = before.is_some() && (stored.is_none() || stored == before);
    if let Some(Cell::Text(labels)) = row.get_mut(SESSION.place("labels")) {
        let known: Labels = serde_json::from_str(labels).unwrap_or_default();
        let known: Labels = known
            .iter()
            .map(|(name, value)| (clean(name), clean(value)))
            .collect();
        *labels = serde_json::to_string(&known).unwrap_or_else(|_| "{}".to_owned());
    }
    if let Some(Cell::Text(name)) = row.get_mut(SESSION.place("name")) {
        *name = clean(name);
    }
    let after = sum(row);
    if let Some(cell) = row.get_mut(SESSION.place("row_sum")).filter(|_| whole) {
        *cell = after.map_or(Cell::Null, Cell::Int);
    }
}

/// The checksum that a list row should have; `None`: there is no row yet.
fn sum(row: &[Cell]) -> Option<i64> {
    let cell = |name: &str| row.get(SESSION.place(name));
    let text = |name: &str| match cell(name) {
        Some(Cell::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let flag = |name: &str| cell(name) == Some(&Cell::Int(1));
    let columns = RowColumns {
        uid: text("uid")?,
        name: text("name")?,
        state: text("state")?,
        closed: flag("closed"),
        labels: text("labels")?,
        resumable: flag("resumable"),
        wake_at_ms: match cell("wake_at_ms") {
            Some(Cell::Int(at)) => Some(*at),
            _ => None,
        },
        summary: text("summary")?,
    };
    Some(columns.sum())
}
