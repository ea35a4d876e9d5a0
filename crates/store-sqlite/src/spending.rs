//! The sums of what deleted sessions spent.

use crate::error::Error;
use crate::values::{column, size, uid};
use agentd_protocol::{SessionId, Summary, Usage};
use agentd_store::Spending;
use rusqlite::{Connection, OptionalExtension, params};

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

fn add(writer: &Connection, spent: Spending) -> rusqlite::Result<()> {
    let sums: i64 = writer.query_row("SELECT count(*) FROM spent", [], |row| row.get(0))?;
    let mut known = writer.prepare_cached("SELECT 1 FROM spent WHERE model = ?1 AND labels = ?2")?;
    let sums = usize::try_from(sums).unwrap_or(usize::MAX);
    let spent = spent.placed(sums, |spent| known.exists(params![spent.model, labels(spent)]))?;
    let mut add = writer.prepare_cached(
        "INSERT INTO spent VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT(model, labels) DO UPDATE SET
         sessions = sessions + excluded.sessions, steps = steps + excluded.steps, input = input + excluded.input,
         output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
         cache_write = cache_write + excluded.cache_write, reasoning = reasoning + excluded.reasoning,
         usd = usd + excluded.usd, cache_write_1h = cache_write_1h + excluded.cache_write_1h",
    )?;
    add.execute(params![
        spent.model,
        labels(&spent),
        column(spent.sessions),
        column(spent.steps),
        column(spent.usage.input),
        column(spent.usage.output),
        column(spent.usage.cache_read),
        column(spent.usage.cache_write),
        column(spent.usage.reasoning),
        spent.cost_usd,
        column(spent.usage.cache_write_1h),
    ])?;
    Ok(())
}

/// The columns as the session table stores them.
fn labels(spent: &Spending) -> String {
    serde_json::to_string(&spent.labels).unwrap_or_default()
}

pub(crate) fn read(reader: &Connection) -> Result<Vec<Spending>, Error> {
    let mut select = reader.prepare_cached("SELECT * FROM spent ORDER BY model, labels")?;
    let rows = select.query_map([], |row| {
        let count = |index: usize| row.get(index).map(size);
        let labels: String = row.get(1)?;
        Ok(Spending {
            model: row.get(0)?,
            labels: serde_json::from_str(&labels).unwrap_or_default(),
            sessions: count(2)?,
            steps: count(3)?,
            usage: Usage {
                input: count(4)?,
                output: count(5)?,
                cache_read: count(6)?,
                cache_write: count(7)?,
                cache_write_1h: count(10)?,
                reasoning: count(8)?,
            },
            cost_usd: row.get(9)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
