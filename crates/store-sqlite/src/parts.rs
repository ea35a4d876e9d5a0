//! The database as tables, for a migration.

use crate::committer::Tx;
use crate::error::Error;
use crate::store::SqliteStore;
use crate::values::{column, session_of, size};
use crate::witness::Head;
use crate::writer::Weight;
use agentd_store::backend::ROW_LIMIT;
use agentd_store::parts::{Cell, Cells, Facts, Held, Limits, Mark, Parts, TABLES, Table};
use agentd_store::{Blob, EncodedEvent, StoreError};
use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, params, params_from_iter};

/// The weight of a batch or of the end of a migration; nothing else writes.
const BATCH: Weight = Weight { events: 1, bytes: 0 };

/// Exists only in the destination of an unfinished migration.
const MARK: &str = "CREATE TABLE migration(
  state TEXT NOT NULL, origin TEXT NOT NULL, part TEXT NOT NULL, place TEXT NOT NULL) STRICT";

/// A tombstone that holds the end of the stream if the newest session of the source was purged: cursors must only rise.
/// Its id keeps it out of [`Table`]s.
const END: [&str; 2] = [
    "INSERT INTO session(id, uid, epoch, head, last_append, created_ms, updated_ms, deleted_ms, own_sum, head_sum)
     VALUES (-1, 'ffffffffffffffffffffffffffffffff', 1, 1, x'', ?1, ?1, ?1,
       agentd_sum('ffffffffffffffffffffffffffffffff', 1, ?1, ?1), agentd_sum('ffffffffffffffffffffffffffffffff', 1, x'', ?1))",
    "INSERT INTO event(cursor, session_id, seq, epoch, at_ms, kind, body, sum) VALUES (?1, -1, 1, 1, ?2, 'end', '{}', ?3)",
];

/// A cell as a parameter.
struct Bound<'a>(&'a Cell);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Cell::Null => ToSqlOutput::Owned(Value::Null),
            Cell::Int(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Cell::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Cell::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        ValueRef::Real(number) => Cell::Real(number),
        // Bytes that are not UTF-8 show as damage, because their sum differs.
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}

fn mark(connection: &Connection) -> rusqlite::Result<Option<Mark>> {
    let exists = "SELECT 1 FROM sqlite_schema WHERE name = 'migration'";
    if !connection.prepare(exists)?.exists([])? {
        return Ok(None);
    }
    let read = "SELECT state, origin, part, place FROM migration";
    let mark = connection.query_row(read, [], |row| {
        Ok(Mark {
            state: row.get(0)?,
            origin: row.get(1)?,
            part: row.get(2)?,
            place: row.get(3)?,
        })
    });
    mark.optional()
}

/// Refuses the destination of an unfinished migration.
pub(crate) fn refuse_unfinished(connection: &Connection) -> Result<(), Error> {
    match mark(connection)? {
        Some(mark) => Err(StoreError::Unfinished { origin: mark.origin }.into()),
        None => Ok(()),
    }
}

fn facts(reader: &Connection) -> Result<Facts, Error> {
    let number = |sql: &str| reader.query_row(sql, [], |row| row.get::<_, i64>(0)).map(size);
    let cursor = number("SELECT coalesce(max(cursor), 0) FROM event")?;
    let starts = number("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'node'")?;
    let state = "SELECT count(*), coalesce(min(uid), ''), coalesce(max(uid), ''), coalesce(sum(epoch), 0) \
       FROM session WHERE id > 0";
    let state = reader.query_row(state, [], |row| {
        let (sessions, epochs): (i64, i64) = (row.get(0)?, row.get(3)?);
        let (first, last): (String, String) = (row.get(1)?, row.get(2)?);
        Ok(format!("{first} {last} {sessions} {epochs} {cursor} {starts}"))
    })?;
    let rows = TABLES
        .into_iter()
        .map(|table| Ok((table.name, number(&table.count_sql())?)));
    Ok(Facts {
        state,
        cursor,
        rows: rows.collect::<Result<_, rusqlite::Error>>()?,
        mark: mark(reader)?,
    })
}

fn page(reader: &Connection, table: &Table, after: &[Cell], limits: Limits) -> Result<Vec<Cells>, Error> {
    let sql = table.page_sql(after.is_empty(), limits, |column| column.name.to_owned());
    let mut select = reader.prepare_cached(&sql)?;
    let rows = select.query_map(params_from_iter(after.iter().map(Bound)), |row| {
        let cells = (0..table.columns.len()).map(|index| row.get_ref(index).map(cell));
        cells.collect::<rusqlite::Result<Cells>>()
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn put(writer: &Tx<'_>, table: &Table, rows: &[Cells], mark: &Mark) -> rusqlite::Result<()> {
    let places = vec!["?"; table.columns.len()].join(", ");
    let sql = format!("INSERT INTO {}({}) VALUES ({places})", table.name, table.names());
    let mut insert = writer.prepare_cached(&sql)?;
    for row in rows {
        insert.execute(params_from_iter(row.iter().map(Bound)))?;
    }
    let moved = "UPDATE migration SET part = ?1, place = ?2";
    writer.prepare_cached(moved)?.execute([&mark.part, &mark.place])?;
    Ok(())
}

fn finish(writer: &Tx<'_>, end: u64, now: i64) -> rusqlite::Result<()> {
    let newest: i64 = writer.query_row("SELECT coalesce(max(cursor), 0) FROM event", [], |row| row.get(0))?;
    if newest < column(end) {
        let [session, event] = END;
        writer.execute(session, [now])?;
        writer.execute(event, params![column(end), now, EncodedEvent::sum(b"{}")])?;
    }
    writer.execute_batch("DROP TABLE migration")?;
    // The witness has recorded none of this yet.
    let mut heads = writer.prepare("SELECT uid, head FROM session WHERE head > 0")?;
    let mut rows = heads.query([])?;
    while let Some(row) = rows.next()? {
        let (session, seq): (String, i64) = (row.get(0)?, row.get(1)?);
        writer.note(Head {
            cursor: end,
            session: session_of(&session)?,
            seq: size(seq),
        });
    }
    Ok(())
}

#[async_trait]
impl Parts for SqliteStore {
    /// The open store holds the locks of its files.
    async fn hold(&self) -> Result<Held, StoreError> {
        Ok(Box::new(()))
    }

    async fn facts(&self) -> Result<Facts, StoreError> {
        self.readers.read(facts).await
    }

    async fn page(
        &self,
        table: &'static Table,
        after: Cells,
        limits: Limits,
    ) -> Result<Vec<Cells>, StoreError> {
        self.readers
            .read(move |reader| page(reader, table, &after, limits))
            .await
    }

    async fn begin(&self, mark: Mark) -> Result<(), StoreError> {
        let begin = move |writer: &Connection| {
            writer.execute_batch(MARK)?;
            let row = [&mark.state, &mark.origin, &mark.part, &mark.place];
            writer.execute("INSERT INTO migration VALUES (?1, ?2, ?3, ?4)", row)?;
            Ok(())
        };
        self.writer.change(BATCH, begin).await
    }

    async fn put_content(&self, bytes: Bytes) -> Result<(), StoreError> {
        let blob = Blob::new(bytes);
        self.write_files(std::slice::from_ref(&blob)).await?;
        let put = move |writer: &Connection| {
            let row = (blob.bytes().len() <= ROW_LIMIT).then_some(blob.bytes().as_ref());
            let sql = "INSERT OR IGNORE INTO blob(name, bytes) VALUES (?1, ?2)";
            writer.execute(sql, params![blob.name(), row]).map(drop)
        };
        self.writer.change(BATCH, put).await
    }

    async fn put(&self, table: &'static Table, rows: Vec<Cells>, mark: Mark) -> Result<(), StoreError> {
        self.writer
            .transact(BATCH, move |tx| put(tx, table, &rows, &mark))
            .await
    }

    async fn finish(&self, cursor: u64, _node: Option<&str>) -> Result<(), StoreError> {
        let now = column(self.clock.now().0);
        self.writer
            .transact(BATCH, move |tx| finish(tx, cursor, now))
            .await
    }
}
