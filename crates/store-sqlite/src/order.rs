//! Orders and searches of list rows as SQL functions over the stored JSON, so that they are the same in every backend.

use crate::error::Error;
use crate::values::uid;
use agentd_protocol::{Listed, SortBy, SortKey};
use agentd_store::{Filter, Row, StoreError};
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _};
use std::cmp::Ordering;

/// Registers `agentd_key(order, summary)`, the value of a row in an order, and `agentd_has(search, summary)`.
pub(crate) fn define(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("agentd_key", 2, flags, |context| {
        let number = usize::try_from(context.get::<i64>(0)?).ok();
        let by = number
            .and_then(|number| SortBy::ALL.get(number))
            .copied()
            .unwrap_or_default();
        Ok(value(listed(context).key(by)))
    })?;
    connection.create_scalar_function("agentd_has", 2, flags, |context| {
        let search: String = context.get(0)?;
        Ok(listed(context).has(&search))
    })
}

/// A damaged row counts as one without values.
fn listed(context: &Context<'_>) -> Listed {
    let json = context.get_raw(1).as_bytes().unwrap_or_default();
    serde_json::from_slice(json).unwrap_or_default()
}

fn value(key: SortKey) -> Value {
    match key {
        SortKey::Number(number) => Value::Real(number),
        SortKey::Text(text) => Value::Text(text),
    }
}

/// SQL for the value of a row; `None`: the order is that of the ids, which have an index.
pub(crate) fn expression(by: SortBy) -> Option<String> {
    let number = SortBy::ALL.iter().position(|known| *known == by)?;
    (by != SortBy::Created).then(|| format!("agentd_key({number}, summary)"))
}

/// Brings rows into the order of a list.
pub(crate) fn sort(rows: &mut [Row], filter: &Filter) {
    let key = |row: &Row| Listed::from(&row.summary).key(filter.sort);
    rows.sort_by(|a, b| {
        let keys = match (key(a), key(b)) {
            (SortKey::Number(a), SortKey::Number(b)) => a.total_cmp(&b),
            (SortKey::Text(a), SortKey::Text(b)) => a.cmp(&b),
            (SortKey::Number(_), SortKey::Text(_)) => Ordering::Less,
            (SortKey::Text(_), SortKey::Number(_)) => Ordering::Greater,
        };
        let ids = a.summary.session.cmp(&b.summary.session);
        let places = if filter.sort == SortBy::Created {
            ids
        } else {
            keys.then(ids)
        };
        if filter.ascending {
            places
        } else {
            places.reverse()
        }
    });
}

/// The value and the id behind which a list begins.
pub(crate) fn beginning(reader: &Connection, filter: &Filter) -> Result<(Value, String), Error> {
    let Some(place) = &filter.after else {
        // Every id is after "" and before "g"; SQLite sorts texts after numbers, and blobs after texts.
        return Ok(if filter.ascending {
            (Value::Real(f64::NEG_INFINITY), String::new())
        } else {
            (Value::Blob(Vec::new()), "g".to_owned())
        });
    };
    let id = uid(place.session);
    let Some(key) = expression(filter.sort) else {
        return Ok((Value::Null, id));
    };
    let seen = place.key.as_deref().and_then(|text| filter.sort.parse_key(text));
    let key = match seen {
        Some(key) => value(key),
        None => reader
            .prepare_cached(&format!("SELECT {key} FROM session WHERE uid = ?1"))?
            .query_row([&id], |row| row.get(0))
            .optional()?
            .ok_or(StoreError::NotFound(place.session))?,
    };
    Ok((key, id))
}
