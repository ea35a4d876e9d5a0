//! The database as tables, for a migration.

use crate::batch::Sorted;
use crate::error::store_error;
use crate::queries::{all, count_of, first, get};
use crate::store::PostgresStore;
use agentd_protocol::{Listed, Summary};
use agentd_store::backend::{column, hex};
use agentd_store::parts::{
    Cell, Cells, Column, Facts, Held, Kind, Limits, Mark, Parts, SESSION, TABLES, Table,
};
use agentd_store::{Blob, StoreError};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use deadpool_postgres::Object;
use futures_util::future::try_join_all;
use std::collections::BTreeMap;
use std::error::Error;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// Nodes take this lock while they join (`schema/1.sql`), so that none can join while a migration holds it. The server may
/// still hold it for a moment for a migration that has just ended.
const JOINING: &str = "SELECT pg_advisory_lock(112603926429699)";

/// A node without a lease is gone, whether or not another one took note.
const REAP: &str = "UPDATE node SET dead = true WHERE NOT dead AND lease_until < clock_timestamp()";

/// Exists only in the destination of an unfinished migration.
const MARK: &str = "CREATE TABLE migration(state text NOT NULL, origin text NOT NULL, part text NOT NULL, place text NOT NULL)";

/// A session with the columns that only PostgreSQL has, which follow those of the source. Its parent, if it has one, is there already.
const REST: &str =
    "root, sort_updated, sort_name, sort_model, sort_state, sort_steps, sort_tokens, sort_cost, searched";

/// The number of columns in [`REST`].
const RESTS: usize = 9;

/// A cell as a parameter whose type the statement determines.
#[derive(Debug)]
struct Param(Cell);

impl ToSql for Param {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match &self.0 {
            Cell::Null => Ok(IsNull::Yes),
            Cell::Int(number) => number.to_sql(kind, out),
            Cell::Real(number) => number.to_sql(kind, out),
            Cell::Text(text) => text.to_sql(kind, out),
            Cell::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// How a column is read.
fn reading(of: &Column) -> String {
    match of.kind {
        Kind::Flag => format!("{}::int::bigint", of.name),
        Kind::Json => format!("{}::text", of.name),
        Kind::Int | Kind::Real | Kind::Text | Kind::Bytes => of.name.to_owned(),
    }
}

/// How a parameter becomes a column.
fn writing(number: usize, kind: Kind) -> String {
    match kind {
        Kind::Int => format!("${number}::bigint"),
        Kind::Flag => format!("${number}::bigint <> 0"),
        Kind::Real => format!("${number}::double precision"),
        Kind::Text => format!("${number}::text"),
        Kind::Json => format!("${number}::text::jsonb"),
        Kind::Bytes => format!("${number}::bytea"),
    }
}

fn cell(row: &Row, index: usize, kind: Kind) -> Result<Cell, StoreError> {
    let cell = match kind {
        Kind::Int | Kind::Flag => get::<Option<i64>>(row, index)?.map(Cell::Int),
        Kind::Real => get::<Option<f64>>(row, index)?.map(Cell::Real),
        Kind::Text | Kind::Json => get::<Option<String>>(row, index)?.map(Cell::Text),
        Kind::Bytes => get::<Option<Vec<u8>>>(row, index)?.map(Cell::Bytes),
    };
    Ok(cell.unwrap_or(Cell::Null))
}

fn insert_sql(table: &Table) -> String {
    let values = (1..)
        .zip(table.columns)
        .map(|(number, column)| writing(number, column.kind));
    let mut values: Vec<String> = values.collect();
    let (names, given) = (table.names(), values.len());
    if table != &SESSION {
        return format!(
            "INSERT INTO {}({names}) VALUES ({})",
            table.name,
            values.join(", ")
        );
    }
    values.push(format!(
        "coalesce((SELECT p.root FROM session p WHERE p.uid = ${}::text), $2::text)",
        given + 1
    ));
    let rest = [
        Kind::Real,
        Kind::Text,
        Kind::Text,
        Kind::Real,
        Kind::Real,
        Kind::Real,
        Kind::Real,
        Kind::Text,
    ];
    values.extend(
        (given + 2..)
            .zip(rest)
            .map(|(number, kind)| writing(number, kind)),
    );
    format!(
        "INSERT INTO session({names}, {REST}) OVERRIDING SYSTEM VALUE VALUES ({})",
        values.join(", ")
    )
}

/// The parameters of [`REST`], as the owner of the session would compute them.
fn rest(row: &[Cell]) -> [Cell; RESTS] {
    let summary: Option<Summary> = match row.get(SESSION.place("summary")) {
        Some(Cell::Text(json)) => serde_json::from_str(json).ok(),
        _ => None,
    };
    let parent = summary.as_ref().and_then(|summary| summary.parent);
    let sorted = Sorted::of(&summary.as_ref().map_or_else(Listed::default, Listed::from));
    [
        parent.map_or(Cell::Null, |parent| Cell::Text(hex(parent))),
        Cell::Real(sorted.updated),
        Cell::Text(sorted.name),
        Cell::Text(sorted.model),
        Cell::Real(sorted.urgency),
        Cell::Real(sorted.steps),
        Cell::Real(sorted.tokens),
        Cell::Real(sorted.cost),
        Cell::Text(sorted.searched),
    ]
}

async fn mark(client: &Object) -> Result<Option<Mark>, StoreError> {
    let exists = first(client, "SELECT to_regclass('migration') IS NOT NULL", &[]).await?;
    if !exists.map_or(Ok(false), |row| get(&row, 0))? {
        return Ok(None);
    }
    // Not prepared: the table comes and goes.
    let rows = client
        .query("SELECT state, origin, part, place FROM migration", &[])
        .await;
    let rows = rows.map_err(|error| store_error(&error))?;
    let mark = |row: &Row| {
        Ok(Mark {
            state: get(row, 0)?,
            origin: get(row, 1)?,
            part: get(row, 2)?,
            place: get(row, 3)?,
        })
    };
    rows.first().map(mark).transpose()
}

/// Refuses the destination of an unfinished migration.
pub(crate) async fn refuse_unfinished(client: Object) -> Result<(), StoreError> {
    match mark(&client).await? {
        Some(mark) => Err(StoreError::Unfinished { origin: mark.origin }),
        None => Ok(()),
    }
}

/// The number of nodes that joined is in the state, so that it changes when a node had the database in between.
const STATE: &str =
    "SELECT concat_ws(' ', min(uid), max(uid), count(*), sum(epoch), (SELECT cursor FROM stream),
  (SELECT last_value FROM node_id_seq)) FROM session WHERE id > 0";

async fn facts(client: Object) -> Result<Facts, StoreError> {
    // Counting may take longer than a statement normally may.
    let run = async |sql: &str| {
        let done = client.batch_execute(sql).await;
        done.map_err(|error| store_error(&error))
    };
    run("SET statement_timeout = 0").await?;
    let facts = counted(&client).await;
    run(&crate::server::settings()).await?;
    facts
}

async fn counted(client: &Object) -> Result<Facts, StoreError> {
    let cursor = crate::queries::cursor(client).await?;
    let state = first(client, STATE, &[]).await?;
    let mut rows = BTreeMap::new();
    for table in TABLES {
        let count = first(client, &table.count_sql(), &[]).await?;
        rows.insert(table.name, count.map_or(Ok(0), |row| count_of(&row, 0))?);
    }
    Ok(Facts {
        state: state.map_or(Ok(String::new()), |row| get(&row, 0))?,
        cursor,
        rows,
        mark: mark(client).await?,
    })
}

async fn page(
    client: Object,
    table: &'static Table,
    after: Cells,
    limits: Limits,
) -> Result<Vec<Cells>, StoreError> {
    let sql = table.page_sql(after.is_empty(), limits, reading);
    let after: Vec<Param> = after.into_iter().map(Param).collect();
    let after: Vec<&(dyn ToSql + Sync)> = after.iter().map(|cell| cell as _).collect();
    let rows = all(&client, &sql, &after).await?;
    let cells = |row: &Row| {
        let cells = table.columns.iter().enumerate();
        cells
            .map(|(index, column)| cell(row, index, column.kind))
            .collect()
    };
    rows.iter().map(cells).collect()
}

async fn put(
    mut client: Object,
    table: &'static Table,
    rows: Vec<Cells>,
    mark: Mark,
) -> Result<(), StoreError> {
    let failed = |error| store_error(&error);
    let tx = client.transaction().await.map_err(failed)?;
    let insert = tx.prepare_cached(&insert_sql(table)).await.map_err(failed)?;
    let params = |row: Cells| {
        let rest = (table == &SESSION).then(|| rest(&row));
        row.into_iter()
            .chain(rest.into_iter().flatten())
            .map(Param)
            .collect::<Vec<Param>>()
    };
    if table == &SESSION {
        // One after the other: a session finds the root of its parent.
        for row in rows {
            tx.execute_raw(&insert, params(row)).await.map_err(failed)?;
        }
    } else {
        let rows = rows.into_iter().map(|row| tx.execute_raw(&insert, params(row)));
        try_join_all(rows).await.map_err(failed)?;
    }
    let moved = tx
        .prepare_cached("UPDATE migration SET part = $1, place = $2")
        .await
        .map_err(failed)?;
    tx.execute(&moved, &[&mark.part, &mark.place])
        .await
        .map_err(failed)?;
    tx.commit().await.map_err(failed)
}

async fn finish(mut client: Object, cursor: u64, node: Option<String>) -> Result<(), StoreError> {
    let failed = |error| store_error(&error);
    let tx = client.transaction().await.map_err(failed)?;
    let end = "UPDATE stream SET cursor = $1";
    tx.execute(end, &[&column(cursor)]).await.map_err(failed)?;
    tx.execute(
        "UPDATE session SET node = $1::text WHERE $1::text IS NOT NULL",
        &[&node],
    )
    .await
    .map_err(failed)?;
    tx.batch_execute(
        "SELECT setval(pg_get_serial_sequence('session', 'id'), greatest((SELECT max(id) FROM session), 1));
         DROP TABLE migration",
    )
    .await
    .map_err(failed)?;
    tx.commit().await.map_err(failed)
}

#[async_trait]
impl Parts for PostgresStore {
    async fn hold(&self) -> Result<Held, StoreError> {
        let client = self.connect().await?;
        let held = client.batch_execute(JOINING).await;
        held.map_err(|error| match error.code() {
            Some(&SqlState::LOCK_NOT_AVAILABLE) => StoreError::Migration(format!(
                "a node is about to join {}, or another migration uses it; try again",
                self.server()
            )),
            _ => store_error(&error),
        })?;
        let reaped = client.batch_execute(REAP).await;
        reaped.map_err(|error| store_error(&error))?;
        let names = client
            .query("SELECT name FROM node WHERE NOT dead ORDER BY name", &[])
            .await;
        let names = names.map_err(|error| store_error(&error))?;
        let names: Vec<&str> = names.iter().map(|row| get(row, 0)).collect::<Result<_, _>>()?;
        if names.is_empty() {
            return Ok(Box::new(client));
        }
        Err(StoreError::Migration(format!(
            "nodes use {}: {}; stop them (agentctl node drain NAME) and try again. A node that was killed counts until \
             its lease has ended (node.ttl)",
            self.server(),
            names.join(", ")
        )))
    }

    async fn facts(&self) -> Result<Facts, StoreError> {
        self.reads.run(facts).await
    }

    async fn page(
        &self,
        table: &'static Table,
        after: Cells,
        limits: Limits,
    ) -> Result<Vec<Cells>, StoreError> {
        self.reads
            .run(move |client| page(client, table, after, limits))
            .await
    }

    async fn begin(&self, mark: Mark) -> Result<(), StoreError> {
        let begin = self.reads.run(move |mut client| async move {
            let failed = |error| store_error(&error);
            let tx = client.transaction().await.map_err(failed)?;
            tx.batch_execute(MARK).await.map_err(failed)?;
            let row: [&(dyn ToSql + Sync); 4] = [&mark.state, &mark.origin, &mark.part, &mark.place];
            tx.execute("INSERT INTO migration VALUES ($1, $2, $3, $4)", &row)
                .await
                .map_err(failed)?;
            tx.commit().await.map_err(failed)
        });
        begin.await
    }

    async fn put_content(&self, bytes: Bytes) -> Result<(), StoreError> {
        let (blob, now) = (Blob::new(bytes), self.now());
        self.reads
            .run(move |client| async move { crate::blobs::put(&client, &[blob], now).await })
            .await
    }

    async fn put(&self, table: &'static Table, rows: Vec<Cells>, mark: Mark) -> Result<(), StoreError> {
        self.reads.run(move |client| put(client, table, rows, mark)).await
    }

    async fn finish(&self, cursor: u64, node: Option<&str>) -> Result<(), StoreError> {
        let node = node.map(str::to_owned);
        self.reads.run(move |client| finish(client, cursor, node)).await
    }
}
