//! Lists of sessions: the statement for a filter.

use crate::queries::{LISTED, LIVE, ROW, first, get, list_row};
use agentd_protocol::{SortBy, SortKey};
use agentd_store::backend::{clamp, hex};
use agentd_store::{Filter, MAX_LIST, Row, StoreError};
use deadpool_postgres::Object;
use tokio_postgres::types::ToSql;

/// The column of an order; `None`: the order is that of the ids.
const fn sort_column(by: SortBy) -> Option<&'static str> {
    match by {
        SortBy::Created => None,
        SortBy::Updated => Some("sort_updated"),
        SortBy::Name => Some("sort_name"),
        SortBy::Model => Some("sort_model"),
        SortBy::State => Some("sort_state"),
        SortBy::Steps => Some("sort_steps"),
        SortBy::Tokens => Some("sort_tokens"),
        SortBy::Cost => Some("sort_cost"),
    }
}

type Value = Box<dyn ToSql + Sync + Send>;

/// Conditions with their parameters.
#[derive(Default)]
struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// Adds a condition; `{}` in it is the place of the value.
    fn add(&mut self, condition: &str, value: Value) {
        self.values.push(value);
        self.sql
            .push(condition.replace("{}", &format!("${}", self.values.len())));
    }
}

/// The condition that a session is behind the last one of the previous page.
async fn begin(client: &Object, filter: &Filter) -> Result<Conditions, StoreError> {
    let mut wanted = Conditions::default();
    let Some(place) = &filter.after else {
        return Ok(wanted);
    };
    let beyond = if filter.ascending { ">" } else { "<" };
    let id = hex(place.session);
    let Some(column) = sort_column(filter.sort) else {
        wanted.add(&format!("uid {beyond} {{}}"), Box::new(id));
        return Ok(wanted);
    };
    let seen = place.key.as_deref().and_then(|text| filter.sort.parse_key(text));
    let key: Value = match seen {
        Some(SortKey::Number(number)) => Box::new(number),
        Some(SortKey::Text(text)) => Box::new(crate::batch::clean(&text)),
        None => stored_key(client, column, filter.sort, &id)
            .await?
            .ok_or(StoreError::NotFound(place.session))?,
    };
    wanted.values.extend([key, Box::new(id) as Value]);
    wanted.sql.push(format!("({column}, uid) {beyond} ($1, $2)"));
    Ok(wanted)
}

pub(crate) async fn list(client: Object, filter: Filter, node: Option<i64>) -> Result<Vec<Row>, StoreError> {
    let mut wanted = begin(&client, &filter).await?;
    let direction = if filter.ascending { "ASC" } else { "DESC" };
    let column = sort_column(filter.sort);
    if !filter.all && filter.states.is_empty() {
        wanted.sql.push("NOT closed".to_owned());
    }
    if !filter.states.is_empty() {
        wanted.add(
            "EXISTS (SELECT 1 FROM unnest({}::text[]) AS want
               WHERE state = want OR left(state, length(want) + 1) = want || '(')",
            Box::new(filter.states),
        );
    }
    if !filter.labels.is_empty() {
        let labels = serde_json::to_string(&filter.labels)?;
        wanted.add("labels @> {}::text::jsonb", Box::new(labels));
    }
    if filter.resumable_or_timed {
        wanted
            .sql
            .push("(resumable OR wake_at_ms IS NOT NULL)".to_owned());
        if let Some(node) = node {
            // Those of others are theirs to continue.
            wanted.add("owner = {}::bigint", Box::new(node));
        }
    }
    for word in filter.search.split_whitespace() {
        wanted.add("position({}::text IN searched) > 0", Box::new(word.to_owned()));
    }
    let order = column.map_or_else(String::new, |column| format!("{column} {direction}, "));
    let more: String = wanted.sql.iter().map(|sql| format!(" AND {sql}")).collect();
    let limit = clamp(filter.limit, MAX_LIST);
    let sql = format!(
        "SELECT {ROW} FROM session WHERE {LIVE} AND {LISTED}{more}
         ORDER BY {order}uid {direction} LIMIT {limit}"
    );
    let params: Vec<&(dyn ToSql + Sync)> = wanted
        .values
        .iter()
        .map(|value| value.as_ref() as &(dyn ToSql + Sync))
        .collect();
    let rows = client.query(&sql, &params).await;
    let rows = rows.map_err(|error| crate::error::store_error(&error))?;
    let mut list = Vec::with_capacity(rows.len());
    for row in &rows {
        match list_row(row) {
            Ok(row) => list.push(row),
            // An unreadable id hides no other session.
            Err(error) => tracing::error!(%error, "skipping an unreadable list row"),
        }
    }
    Ok(list)
}

async fn stored_key(
    client: &Object,
    column: &str,
    by: SortBy,
    uid: &str,
) -> Result<Option<Value>, StoreError> {
    let sql = format!("SELECT {column} FROM session WHERE uid = $1");
    let Some(row) = first(client, &sql, &[&uid]).await? else {
        return Ok(None);
    };
    Ok(Some(match by {
        SortBy::Name | SortBy::Model => Box::new(get::<String>(&row, 0)?) as Value,
        _ => Box::new(get::<f64>(&row, 0)?) as Value,
    }))
}
