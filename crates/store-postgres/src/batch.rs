//! A batch of appends as the parameters of one statement, and what became of each. Pure.

use agentd_protocol::{Listed, RunState, SortBy, SortKey, Timestamp};
use agentd_store::backend::{ROW_LIMIT, RowColumns, column, head_sum, hex, size};
use agentd_store::{Append, EventColumns, Outcome};
use postgres_types::ToSql;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;

/// The statement.
pub(crate) const SQL: &str = "SELECT * FROM append_3($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// PostgreSQL has no NUL in a text.
pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The sessions and idempotency keys of a batch: a statement writes each of them at most once.
#[derive(Debug, Default)]
pub(crate) struct Distinct(BTreeSet<String>);

impl Distinct {
    /// Takes the append up, unless the batch has one of its keys already.
    pub(crate) fn admit(&mut self, append: &Append) -> bool {
        let of_key = |key: &agentd_store::IdempotencyKey| format!("k{}\0{}", key.principal.0, key.key);
        let mut keys: Vec<String> = append.keys.iter().map(of_key).collect();
        keys.push(format!("s{}", append.session));
        if keys.iter().any(|key| self.0.contains(key)) {
            return false;
        }
        self.0.extend(keys);
        true
    }
}

/// An append and the row of its session; without a summary it has no row.
#[derive(Debug, Default, ToSql)]
#[postgres(name = "appended_2")]
struct Appended {
    i: i32,
    uid: String,
    epoch: i64,
    head: i64,
    new_head: i64,
    id: Vec<u8>,
    summary: Option<String>,
    name: Option<String>,
    state: Option<String>,
    closed: Option<bool>,
    labels: Option<String>,
    resumable: Option<bool>,
    wake_at_ms: Option<i64>,
    row_sum: Option<i64>,
    sort_updated: Option<f64>,
    sort_name: Option<String>,
    sort_model: Option<String>,
    sort_state: Option<f64>,
    sort_steps: Option<f64>,
    sort_tokens: Option<f64>,
    sort_cost: Option<f64>,
    searched: Option<String>,
    head_sum: i64,
}

#[derive(Debug, ToSql)]
#[postgres(name = "appended_event_1")]
struct AppendedEvent<'a> {
    i: i32,
    seq: i64,
    epoch: i64,
    at_ms: i64,
    kind: &'a str,
    /// Of the last event of an append.
    append_id: Option<&'a [u8]>,
    body: Cow<'a, str>,
    sum: i64,
}

#[derive(Debug, ToSql)]
#[postgres(name = "appended_key_1")]
struct AppendedKey<'a> {
    i: i32,
    principal: String,
    key: String,
    method: &'a str,
    body_hash: &'a [u8],
    answer: &'a str,
}

#[derive(Debug, ToSql)]
#[postgres(name = "appended_blob_1")]
struct AppendedBlob<'a> {
    i: i32,
    name: &'a str,
    bytes: Option<&'a [u8]>,
}

#[derive(Debug, ToSql)]
#[postgres(name = "appended_charge_1")]
struct AppendedCharge {
    i: i32,
    account: String,
    tokens: i64,
    micro_usd: i64,
}

/// The parameters after the first three, in the order of the statement.
#[derive(Debug, Default)]
pub(crate) struct Batch<'a> {
    some_are_first: bool,
    appends: Vec<Appended>,
    events: Vec<AppendedEvent<'a>>,
    keys: Vec<AppendedKey<'a>>,
    blobs: Vec<AppendedBlob<'a>>,
    charges: Vec<AppendedCharge>,
}

fn number(key: &SortKey) -> f64 {
    match key {
        SortKey::Number(number) => *number,
        SortKey::Text(_) => 0.0,
    }
}

fn text(key: SortKey) -> String {
    match key {
        SortKey::Text(text) => clean(&text),
        SortKey::Number(_) => String::new(),
    }
}

/// What orders and searches read of a list row.
#[derive(Debug)]
pub(crate) struct Sorted {
    pub(crate) updated: f64,
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) urgency: f64,
    pub(crate) steps: f64,
    pub(crate) tokens: f64,
    pub(crate) cost: f64,
    pub(crate) searched: String,
}

impl Sorted {
    pub(crate) fn of(listed: &Listed) -> Self {
        Self {
            updated: number(&listed.key(SortBy::Updated)),
            name: text(listed.key(SortBy::Name)),
            model: text(listed.key(SortBy::Model)),
            urgency: number(&listed.key(SortBy::State)),
            steps: number(&listed.key(SortBy::Steps)),
            tokens: number(&listed.key(SortBy::Tokens)),
            cost: number(&listed.key(SortBy::Cost)),
            searched: clean(&listed.searched()),
        }
    }
}

impl<'a> Batch<'a> {
    /// Encodes appends, of which none may be [`Append::malformed`].
    pub(crate) fn of(appends: impl Iterator<Item = &'a Append>, now: Timestamp) -> Self {
        let mut batch = Self::default();
        for (i, append) in (1..).zip(appends) {
            batch.some_are_first |= append.expected_head == 0;
            batch.appends.push(appended(i, append, now));
            batch.add_events(i, append);
            batch.add_rest(i, append);
        }
        batch
    }

    /// The parameters in the order of the statement.
    pub(crate) fn params<'p>(&'p self, first: [&'p (dyn ToSql + Sync); 3]) -> [&'p (dyn ToSql + Sync); 9] {
        let [now, oldest_key, node] = first;
        [
            now,
            oldest_key,
            node,
            &self.some_are_first,
            &self.appends,
            &self.events,
            &self.keys,
            &self.blobs,
            &self.charges,
        ]
    }

    fn add_events(&mut self, i: i32, append: &'a Append) {
        let uid = hex(append.session);
        for event in &append.events {
            let last = event.seq == append.head();
            let append_id = last.then(|| append.append_id.as_bytes().as_slice());
            let columns = EventColumns {
                uid: &uid,
                // The server assigns it.
                cursor: 0,
                seq: column(event.seq),
                epoch: column(append.epoch),
                at_ms: column(event.at.0),
                kind: &event.kind,
                append_id,
                body: &event.body,
            };
            self.events.push(AppendedEvent {
                i,
                seq: columns.seq,
                epoch: columns.epoch,
                at_ms: columns.at_ms,
                kind: &event.kind,
                append_id,
                // The lines are JSON; bytes that are not UTF-8 would show as damage, because their sum differs.
                body: String::from_utf8_lossy(&event.body),
                sum: columns.sum(),
            });
        }
    }

    fn add_rest(&mut self, i: i32, append: &'a Append) {
        let mut seen = BTreeSet::new();
        for key in &append.keys {
            if seen.insert((&key.principal, &key.key)) {
                self.keys.push(AppendedKey {
                    i,
                    principal: clean(&key.principal.0),
                    key: clean(&key.key),
                    method: &key.method,
                    body_hash: &key.body_hash,
                    answer: &key.answer,
                });
            }
        }
        self.blobs.extend(append.blobs.iter().map(|blob| AppendedBlob {
            i,
            name: blob.name(),
            bytes: (blob.bytes().len() <= ROW_LIMIT).then(|| blob.bytes().as_ref()),
        }));
        self.charges
            .extend(append.charges.iter().map(|charge| AppendedCharge {
                i,
                account: clean(&charge.account),
                tokens: column(charge.tokens),
                micro_usd: column(charge.micro_usd),
            }));
    }
}

fn appended(i: i32, append: &Append, now: Timestamp) -> Appended {
    let uid = hex(append.session);
    let unchanged = Appended {
        i,
        epoch: column(append.epoch),
        head: column(append.expected_head),
        new_head: column(append.head()),
        id: append.append_id.as_bytes().to_vec(),
        head_sum: head_sum(&uid, append.head(), append.append_id.as_bytes(), now),
        uid,
        ..Appended::default()
    };
    let json = append.summary.as_ref().map(serde_json::to_string);
    let (Some(row), Some(Ok(json))) = (&append.summary, json) else {
        return unchanged;
    };
    let labels = row.labels.iter().map(|(name, value)| (clean(name), clean(value)));
    let labels: agentd_protocol::Labels = labels.collect();
    let labels = serde_json::to_string(&labels).unwrap_or_default();
    let (name, state) = (clean(&row.name), row.status.state.as_str().to_owned());
    let closed = row.status.state == RunState::Closed;
    let wake_at_ms = row.wake_at.map(|at| column(at.0));
    let sum = RowColumns {
        uid: &unchanged.uid,
        name: &name,
        state: &state,
        closed,
        labels: &labels,
        resumable: row.resumable,
        wake_at_ms,
        summary: &json,
    }
    .sum();
    let sorted = Sorted::of(&Listed::from(row));
    Appended {
        summary: Some(json),
        name: Some(name),
        state: Some(state),
        closed: Some(closed),
        labels: Some(labels),
        resumable: Some(row.resumable),
        wake_at_ms,
        row_sum: Some(sum),
        sort_updated: Some(sorted.updated),
        sort_name: Some(sorted.name),
        sort_model: Some(sorted.model),
        sort_state: Some(sorted.urgency),
        sort_steps: Some(sorted.steps),
        sort_tokens: Some(sorted.tokens),
        sort_cost: Some(sorted.cost),
        searched: Some(sorted.searched),
        ..unchanged
    }
}

/// What became of a batch.
#[derive(Debug)]
pub(crate) struct Written {
    /// The outcome of each append, in the order of the batch.
    pub(crate) outcomes: Vec<Outcome>,
    /// The cursors before the batch and after it.
    pub(crate) cursors: (u64, u64),
}

/// Reads the result of the statement: a row for each append that was not committed, or one without a number.
pub(crate) fn outcomes<'a>(
    appends: impl Iterator<Item = &'a Append>,
    rows: &[Row],
) -> Result<Written, tokio_postgres::Error> {
    let cursor = |name| {
        let cursor = rows.first().map(|row| row.try_get::<_, i64>(name));
        cursor.transpose().map(|cursor| size(cursor.unwrap_or_default()))
    };
    let cursors = (cursor("cursor_before")?, cursor("cursor_after")?);
    let mut refused = BTreeMap::new();
    for row in rows {
        if let Some(number) = row.try_get::<_, Option<i32>>("number")? {
            refused.insert(number, row);
        }
    }
    let mut last = cursors.0;
    let outcome = |(number, append): (i32, &Append)| {
        if let Some(row) = refused.get(&number) {
            return refusal(row, append.head());
        }
        last = last.saturating_add(append.events.len() as u64);
        Ok(Outcome::Committed {
            head: append.head(),
            cursor: last,
        })
    };
    let outcomes: Result<_, _> = (1..).zip(appends).map(outcome).collect();
    Ok(Written {
        outcomes: outcomes?,
        cursors,
    })
}

/// Why an append that leads to `head` was not committed.
fn refusal(row: &Row, head: u64) -> Result<Outcome, tokio_postgres::Error> {
    Ok(match row.try_get("outcome")? {
        1_i32 => Outcome::Duplicate { head },
        2 => Outcome::Fenced {
            epoch: size(row.try_get("epoch")?),
            head: size(row.try_get("head")?),
        },
        _ => Outcome::KeyTaken {
            answer: row.try_get::<_, Option<String>>("answer")?.unwrap_or_default(),
            same_body: row.try_get::<_, Option<bool>>("same_body")?.unwrap_or_default(),
        },
    })
}
