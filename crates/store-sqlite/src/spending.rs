//! The sums of what deleted sessions spent.

use crate::error::Error;
use crate::row_sum;
use crate::values::{column, size, uid};
use agentd_protocol::{SessionId, Summary, Usage};
use agentd_store::Spending;
use agentd_store::cell_sum::SPENT;
use rusqlite::{Connection, OptionalExtension, params};
use std::sync::LazyLock;

/// Adds what a session spent, in the transaction that deletes it.
pub(crate) fn remember(writer: &Connection, session: SessionId) -> rusqlite::Result<()> {
    let mut select = writer.prepare_cached("SELECT summary FROM session WHERE uid = ?1")?;
    let summary = select.query_row([uid(session)], |row| row.get::<_, Option<String>>(0));
    let summary = summary.optional()?.flatten();
    // An unreadable row must not prevent a user from deleting the session.
    let summary = summary.and_then(|json| serde_json::from_str::<Summary>(&json).ok());
    let spent = summary.as_ref().map(Spending::of);
    match spent.filter(|spent| !spent.is_nothing()) {
        Some(spent) => add(writer, spent),
        None => Ok(()),
    }
}

/// Adds to a sum. The parameters are the columns of [`SPENT`].
static ADD: LazyLock<String> = LazyLock::new(|| {
    let (named, added) = SPENT.columns.split_at(2);
    let places: Vec<String> = (1..=SPENT.columns.len())
        .map(|number| format!("?{number}"))
        .collect();
    let added: Vec<(&str, String)> = added
        .iter()
        .map(|column| (*column, format!("spent.{column} + excluded.{column}")))
        .collect();
    let sums: Vec<(&str, &str)> = added
        .iter()
        .map(|(column, sql)| (*column, sql.as_str()))
        .collect();
    let set: Vec<String> = sums
        .iter()
        .map(|(column, sql)| format!("{column} = {sql}"))
        .collect();
    let (columns, places, key) = (SPENT.columns.join(", "), places.join(", "), named.join(", "));
    let (set, kept) = (set.join(", "), row_sum::kept(&SPENT, &sums));
    format!(
        "INSERT INTO spent({columns}, sum) VALUES ({places}, agentd_sum({places}))
         ON CONFLICT({key}) DO UPDATE SET {set}, sum = {kept}"
    )
});

fn add(writer: &Connection, spent: Spending) -> rusqlite::Result<()> {
    let sums: i64 = writer.query_row("SELECT count(*) FROM spent", [], |row| row.get(0))?;
    let mut known = writer.prepare_cached("SELECT 1 FROM spent WHERE model = ?1 AND labels = ?2")?;
    let sums = usize::try_from(sums).unwrap_or(usize::MAX);
    let spent = spent.placed(sums, |spent| known.exists(params![spent.model, labels(spent)]))?;
    let mut add = writer.prepare_cached(&ADD)?;
    add.execute(params![
        spent.model,
        labels(&spent),
        column(spent.sessions),
        column(spent.steps),
        column(spent.usage.input),
        column(spent.usage.output),
        column(spent.usage.cache_read),
        column(spent.usage.cache_write),
        column(spent.usage.cache_write_1h),
        column(spent.usage.reasoning),
        spent.cost_usd,
    ])?;
    Ok(())
}

/// The columns as the session table stores them.
fn labels(spent: &Spending) -> String {
    serde_json::to_string(&spent.labels).unwrap_or_default()
}

pub(crate) fn read(reader: &Connection) -> Result<Vec<Spending>, Error> {
    let columns = SPENT.columns.join(", ");
    let whole = row_sum::whole(&SPENT);
    let mut select = reader.prepare_cached(&format!(
        "SELECT {columns}, {whole} FROM spent ORDER BY model, labels"
    ))?;
    let rows = select.query_map([], |row| {
        if !row.get::<_, bool>(SPENT.columns.len())? {
            tracing::error!("the sums of what deleted sessions spent have a damaged row, which is left out");
            return Ok(None);
        }
        let count = |index: usize| row.get(index).map(size);
        let labels: String = row.get(1)?;
        Ok(Some(Spending {
            model: row.get(0)?,
            labels: serde_json::from_str(&labels).unwrap_or_default(),
            sessions: count(2)?,
            steps: count(3)?,
            usage: Usage {
                input: count(4)?,
                output: count(5)?,
                cache_read: count(6)?,
                cache_write: count(7)?,
                cache_write_1h: count(8)?,
                reasoning: count(9)?,
            },
            cost_usd: row.get(10)?,
        }))
    })?;
    Ok(rows.filter_map(Result::transpose).collect::<Result<_, _>>()?)
}
