//! A batch of appends as the arrays of one statement, and what became of each. Pure.

use agentd_protocol::{Listed, RunState, SortBy, SortKey};
use agentd_store::backend::{ROW_LIMIT, RowColumns, column, hex, size};
use agentd_store::{Append, EncodedEvent, Outcome};
use std::collections::BTreeSet;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// The statement.
pub(crate) fn sql() -> String {
    let params: Vec<String> = (1..=44).map(|number| format!("${number}")).collect();
    format!("SELECT * FROM append_1({})", params.join(", "))
}

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

macro_rules! columns {
    ($($field:ident: $kind:ty,)*) => {
        /// One array per parameter, after the first three.
        #[derive(Debug, Default)]
        pub(crate) struct Columns { $($field: $kind,)* }

        impl Columns {
            /// The parameters in the order of the statement.
            pub(crate) fn params<'a>(&'a self, first: [&'a (dyn ToSql + Sync); 3]) -> Vec<&'a (dyn ToSql + Sync)> {
                let mut params: Vec<&(dyn ToSql + Sync)> = first.to_vec();
                $(params.push(&self.$field);)*
                params
            }
        }
    };
}

columns! {
    uid: Vec<String>, epoch: Vec<i64>, head: Vec<i64>, new_head: Vec<i64>, id: Vec<Vec<u8>>,
    summary: Vec<Option<String>>, name: Vec<String>, state: Vec<String>, closed: Vec<bool>, labels: Vec<String>,
    resumable: Vec<bool>, wake: Vec<Option<i64>>, sum: Vec<Option<i64>>,
    updated: Vec<f64>, sort_name: Vec<String>, model: Vec<String>, urgency: Vec<f64>, steps: Vec<f64>,
    tokens: Vec<f64>, cost: Vec<f64>, searched: Vec<String>,
    e_append: Vec<i64>, e_seq: Vec<i64>, e_at: Vec<i64>, e_kind: Vec<String>, e_last: Vec<bool>, e_body: Vec<String>,
    e_sum: Vec<i64>,
    k_append: Vec<i64>, k_principal: Vec<String>, k_key: Vec<String>, k_method: Vec<String>, k_hash: Vec<Vec<u8>>,
    k_answer: Vec<String>,
    b_append: Vec<i64>, b_name: Vec<String>, b_bytes: Vec<Option<Vec<u8>>>,
    c_append: Vec<i64>, c_account: Vec<String>, c_tokens: Vec<i64>, c_micro_usd: Vec<i64>,
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

impl Columns {
    /// Encodes appends, of which none may be [`Append::malformed`].
    pub(crate) fn of<'a>(appends: impl Iterator<Item = &'a Append>) -> Self {
        let mut columns = Self::default();
        for (number, append) in (1..).zip(appends) {
            columns.add_row(append);
            columns.add_events(number, append);
            columns.add_rest(number, append);
        }
        columns
    }

    fn add_row(&mut self, append: &Append) {
        let uid = hex(append.session);
        self.epoch.push(column(append.epoch));
        self.head.push(column(append.expected_head));
        self.new_head.push(column(append.head()));
        self.id.push(append.append_id.as_bytes().to_vec());
        let json = append.summary.as_ref().map(serde_json::to_string);
        let (Some(row), Some(Ok(json))) = (&append.summary, json) else {
            self.uid.push(uid);
            return self.add_unchanged();
        };
        let labels = row.labels.iter().map(|(name, value)| (clean(name), clean(value)));
        let labels: agentd_protocol::Labels = labels.collect();
        let labels = serde_json::to_string(&labels).unwrap_or_default();
        let (name, state) = (clean(&row.name), row.status.state.as_str().to_owned());
        let closed = row.status.state == RunState::Closed;
        let wake_at_ms = row.wake_at.map(|at| column(at.0));
        let sum = RowColumns {
            uid: &uid,
            name: &name,
            state: &state,
            closed,
            labels: &labels,
            resumable: row.resumable,
            wake_at_ms,
            summary: &json,
        };
        self.sum.push(Some(sum.sum()));
        let sorted = Sorted::of(&Listed::from(row));
        self.updated.push(sorted.updated);
        self.sort_name.push(sorted.name);
        self.model.push(sorted.model);
        self.urgency.push(sorted.urgency);
        self.steps.push(sorted.steps);
        self.tokens.push(sorted.tokens);
        self.cost.push(sorted.cost);
        self.searched.push(sorted.searched);
        self.summary.push(Some(json));
        self.uid.push(uid);
        self.name.push(name);
        self.state.push(state);
        self.closed.push(closed);
        self.labels.push(labels);
        self.resumable.push(row.resumable);
        self.wake.push(wake_at_ms);
    }

    /// The row stays as it is: the statement does not read these values.
    fn add_unchanged(&mut self) {
        self.summary.push(None);
        self.sum.push(None);
        self.wake.push(None);
        for texts in [
            &mut self.name,
            &mut self.state,
            &mut self.sort_name,
            &mut self.model,
            &mut self.searched,
        ] {
            texts.push(String::new());
        }
        self.labels.push("{}".to_owned());
        for numbers in [
            &mut self.updated,
            &mut self.urgency,
            &mut self.steps,
            &mut self.tokens,
            &mut self.cost,
        ] {
            numbers.push(0.0);
        }
        self.closed.push(false);
        self.resumable.push(false);
    }

    fn add_events(&mut self, number: i64, append: &Append) {
        for event in &append.events {
            self.e_append.push(number);
            self.e_seq.push(column(event.seq));
            self.e_at.push(column(event.at.0));
            self.e_kind.push(event.kind.clone().into_owned());
            self.e_last.push(event.seq == append.head());
            // The lines are JSON; bytes that are not UTF-8 would show as damage, because their sum differs.
            self.e_body
                .push(String::from_utf8_lossy(&event.body).into_owned());
            self.e_sum.push(EncodedEvent::sum(&event.body).into());
        }
    }

    fn add_rest(&mut self, number: i64, append: &Append) {
        let mut seen = BTreeSet::new();
        for key in &append.keys {
            if !seen.insert((&key.principal, &key.key)) {
                continue;
            }
            self.k_append.push(number);
            self.k_principal.push(clean(&key.principal.0));
            self.k_key.push(clean(&key.key));
            self.k_method.push(key.method.clone());
            self.k_hash.push(key.body_hash.to_vec());
            self.k_answer.push(key.answer.clone());
        }
        for blob in &append.blobs {
            let small = blob.bytes().len() <= ROW_LIMIT;
            self.b_append.push(number);
            self.b_name.push(blob.name().to_owned());
            self.b_bytes.push(small.then(|| blob.bytes().to_vec()));
        }
        for charge in &append.charges {
            self.c_append.push(number);
            self.c_account.push(clean(&charge.account));
            self.c_tokens.push(column(charge.tokens));
            self.c_micro_usd.push(column(charge.micro_usd));
        }
    }
}

/// What became of a batch.
#[derive(Debug)]
pub(crate) struct Written {
    /// The outcome of each append, in the order of the batch.
    pub(crate) outcomes: Vec<Outcome>,
    /// The cursor after the batch.
    pub(crate) cursor: u64,
    /// The number of its events that were committed.
    pub(crate) events: u64,
}

/// Reads the result of the statement; `rows` are in the order of the batch.
pub(crate) fn outcomes<'a>(
    appends: impl Iterator<Item = &'a Append>,
    rows: &[Row],
) -> Result<Written, tokio_postgres::Error> {
    let mut outcomes = Vec::with_capacity(rows.len());
    let cursor = rows.first().map(|row| row.try_get::<_, i64>("cursor_after"));
    let cursor = size(cursor.transpose()?.unwrap_or_default());
    let mut written = Vec::with_capacity(rows.len());
    for (append, row) in appends.zip(rows) {
        let (epoch, head): (i64, i64) = (row.try_get("epoch")?, row.try_get("head")?);
        written.push(0);
        outcomes.push(match row.try_get("outcome")? {
            0_i32 => {
                if let Some(last) = written.last_mut() {
                    *last = append.events.len() as u64;
                }
                Outcome::Committed {
                    head: append.head(),
                    cursor: 0,
                }
            }
            1 => Outcome::Duplicate { head: append.head() },
            2 => Outcome::Fenced {
                epoch: size(epoch),
                head: size(head),
            },
            _ => Outcome::KeyTaken {
                answer: row.try_get::<_, Option<String>>("answer")?.unwrap_or_default(),
                same_body: row.try_get::<_, Option<bool>>("same_body")?.unwrap_or_default(),
            },
        });
    }
    let events = written.iter().sum();
    let mut last = cursor.saturating_sub(events);
    for (outcome, events) in outcomes.iter_mut().zip(written) {
        last = last.saturating_add(events);
        if let Outcome::Committed { cursor, .. } = outcome {
            *cursor = last;
        }
    }
    Ok(Written {
        outcomes,
        cursor,
        events,
    })
}
