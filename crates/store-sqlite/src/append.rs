//! One append inside the writer's transaction: all checks first, then all writes.

use crate::blob_files::BlobFiles;
use crate::row_sum;
use crate::values::{column, size, uid};
use agentd_protocol::{RunState, SessionId, Timestamp};
use agentd_store::backend::{KEY_LIFE_MS, ROW_LIMIT, head_sum};
use agentd_store::cell_sum::{CHARGE, IDEMPOTENCY};
use agentd_store::{Append, Blob, Clock, EventColumns, Outcome, StoreError};
use bytes::Bytes;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use std::sync::{Arc, LazyLock};

/// A stored line, bound as TEXT without checking its encoding again.
struct Line<'a>(&'a Bytes);

impl ToSql for Line<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// An append with everything prepared that need not run on the writer thread.
#[derive(Debug)]
pub(crate) struct Staged {
    append: Append,
    uid: String,
    summary: Option<String>,
    labels: String,
    owner: Option<i64>,
    clock: Clock,
    files: Arc<BlobFiles>,
}

struct Fence {
    id: i64,
    epoch: u64,
    head: u64,
    last_append: Vec<u8>,
    deleted: bool,
    /// What places the session or its log is damaged.
    aside: bool,
}

static FENCE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT id, epoch, head, last_append, deleted_ms IS NOT NULL, {} FROM session WHERE uid = ?1",
        *row_sum::PLACED
    )
});

static ADD_CHARGE: LazyLock<String> = LazyLock::new(|| {
    let sums = [
        ("tokens", "charge.tokens + excluded.tokens"),
        ("micro_usd", "charge.micro_usd + excluded.micro_usd"),
    ];
    format!(
        "INSERT INTO charge(account, tokens, micro_usd, sum) VALUES (?1, ?2, ?3, agentd_sum(?1, ?2, ?3))
         ON CONFLICT(account) DO UPDATE SET tokens = tokens + excluded.tokens,
           micro_usd = micro_usd + excluded.micro_usd, sum = {}",
        row_sum::kept(&CHARGE, &sums)
    )
});

static TAKEN: LazyLock<String> = LazyLock::new(|| {
    // A damaged answer is none, and whether the command is the same one is unknown.
    let whole = row_sum::whole(&IDEMPOTENCY);
    format!(
        "SELECT {whole} AND method = ?3 AND body_hash = ?4, iif({whole}, answer, '') FROM idempotency
         WHERE principal = ?1 AND key = ?2 AND (at_ms > ?5 OR NOT {whole})"
    )
});

impl Staged {
    pub(crate) fn new(
        append: Append,
        owner: Option<i64>,
        clock: Clock,
        files: Arc<BlobFiles>,
    ) -> Result<Self, StoreError> {
        let summary = append.summary.as_ref().map(serde_json::to_string).transpose()?;
        let labels = append
            .summary
            .as_ref()
            .map(|summary| serde_json::to_string(&summary.labels))
            .transpose()?;
        let (uid, labels) = (uid(append.session), labels.unwrap_or_default());
        Ok(Self {
            append,
            uid,
            summary,
            labels,
            owner,
            clock,
            files,
        })
    }

    /// Checks and writes. An `Err` rolls the whole transaction back; a refusal is an `Ok` that writes nothing.
    pub(crate) fn apply(&self, writer: &Connection) -> rusqlite::Result<Outcome> {
        let now = self.clock.now();
        let fence = self.fence(writer)?;
        if let Some(refusal) = self.refuse(writer, fence.as_ref(), now)? {
            return Ok(refusal);
        }
        let id = match &fence {
            Some(fence) => fence.id,
            None => self.create(writer, now)?,
        };
        let cursor = self.write_events(writer, id)?;
        for blob in &self.append.blobs {
            put_blob(writer, &self.files, blob, id)?;
        }
        self.write_charges(writer)?;
        self.write_keys(writer, now)?;
        self.write_row(writer, id, now)?;
        Ok(Outcome::Committed {
            head: self.append.head(),
            cursor,
        })
    }

    fn fence(&self, writer: &Connection) -> rusqlite::Result<Option<Fence>> {
        let mut select = writer.prepare_cached(&FENCE)?;
        let fence = select.query_row([&self.uid], |row| {
            Ok(Fence {
                id: row.get(0)?,
                epoch: size(row.get(1)?),
                head: size(row.get(2)?),
                last_append: row.get(3)?,
                deleted: row.get(4)?,
                aside: !row.get::<_, bool>(5)?,
            })
        });
        fence.optional()
    }

    fn refuse(
        &self,
        writer: &Connection,
        fence: Option<&Fence>,
        now: Timestamp,
    ) -> rusqlite::Result<Option<Outcome>> {
        let append = &self.append;
        match fence {
            None if append.epoch == 1 && append.expected_head == 0 => {}
            None => return Ok(Some(Outcome::Fenced { epoch: 0, head: 0 })),
            Some(fence) => {
                if self.is_in(writer, fence)? {
                    return Ok(Some(Outcome::Duplicate { head: append.head() }));
                }
                // The loop that reads the log again finds out whether it can be mended.
                if fence.deleted
                    || fence.aside
                    || fence.epoch != append.epoch
                    || fence.head != append.expected_head
                {
                    return Ok(Some(Outcome::Fenced {
                        epoch: fence.epoch,
                        head: fence.head,
                    }));
                }
            }
        }
        self.taken_key(writer, now)
    }

    /// Whether this append was committed before: the last event of each append stores its id.
    fn is_in(&self, writer: &Connection, fence: &Fence) -> rusqlite::Result<bool> {
        let append_id = self.append.append_id.as_bytes().as_slice();
        if fence.last_append == append_id {
            return Ok(true);
        }
        if self.append.events.is_empty() || self.append.head() > fence.head {
            return Ok(false);
        }
        let mut select = writer
            .prepare_cached("SELECT 1 FROM event WHERE session_id = ?1 AND seq = ?2 AND append_id = ?3")?;
        select.exists(params![fence.id, column(self.append.head()), append_id])
    }

    fn taken_key(&self, writer: &Connection, now: Timestamp) -> rusqlite::Result<Option<Outcome>> {
        for key in &self.append.keys {
            let mut select = writer.prepare_cached(&TAKEN)?;
            let oldest = column(now.0.saturating_sub(KEY_LIFE_MS));
            let found = select.query_row(
                params![
                    key.principal.0,
                    key.key,
                    key.method,
                    key.body_hash.as_slice(),
                    oldest
                ],
                |row| {
                    Ok(Outcome::KeyTaken {
                        same_body: row.get(0)?,
                        answer: row.get(1)?,
                    })
                },
            );
            if let Some(taken) = found.optional()? {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    fn create(&self, writer: &Connection, now: Timestamp) -> rusqlite::Result<i64> {
        let mut insert = writer.prepare_cached(
            "INSERT INTO session(uid, owner, epoch, head, last_append, created_ms, updated_ms, own_sum, head_sum)
             VALUES (?1, ?2, 1, 0, x'', ?3, ?3, agentd_sum(?1, 1, ?3, NULL), agentd_sum(?1, 0, x'', ?3))",
        )?;
        insert.insert(params![self.uid, self.owner, column(now.0)])
    }

    /// Returns the cursor of the last event.
    fn write_events(&self, writer: &Connection, id: i64) -> rusqlite::Result<u64> {
        let mut insert = writer.prepare_cached(
            "INSERT INTO event(cursor, session_id, seq, epoch, at_ms, kind, append_id, body, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let append_id = self.append.append_id.as_bytes().as_slice();
        let mut newest = writer.prepare_cached("SELECT coalesce(max(cursor), 0) FROM event")?;
        let mut cursor: i64 = newest.query_row([], |row| row.get(0))?;
        for event in &self.append.events {
            cursor += 1;
            let columns = EventColumns {
                uid: &self.uid,
                cursor,
                seq: column(event.seq),
                epoch: column(self.append.epoch),
                at_ms: column(event.at.0),
                kind: event.kind.as_ref(),
                append_id: (event.seq == self.append.head()).then_some(append_id),
                body: &event.body,
            };
            insert.execute(params![
                cursor,
                id,
                columns.seq,
                columns.epoch,
                columns.at_ms,
                columns.kind,
                columns.append_id,
                Line(&event.body),
                columns.sum(),
            ])?;
        }
        Ok(size(cursor))
    }

    fn write_charges(&self, writer: &Connection) -> rusqlite::Result<()> {
        for charge in &self.append.charges {
            let mut add = writer.prepare_cached(&ADD_CHARGE)?;
            add.execute(params![
                charge.account,
                column(charge.tokens),
                column(charge.micro_usd)
            ])?;
        }
        Ok(())
    }

    fn write_keys(&self, writer: &Connection, now: Timestamp) -> rusqlite::Result<()> {
        for key in &self.append.keys {
            // Only an expired key can conflict here.
            let mut insert = writer.prepare_cached(
                "INSERT OR REPLACE INTO idempotency(principal, key, method, body_hash, answer, at_ms, sum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, agentd_sum(?1, ?2, ?3, ?4, ?5, ?6))",
            )?;
            let hash = key.body_hash.as_slice();
            insert.execute(params![
                key.principal.0,
                key.key,
                key.method,
                hash,
                key.answer,
                column(now.0)
            ])?;
        }
        Ok(())
    }

    fn write_row(&self, writer: &Connection, id: i64, now: Timestamp) -> rusqlite::Result<()> {
        let append_id = self.append.append_id.as_bytes().as_slice();
        let sum = head_sum(&self.uid, self.append.head(), append_id, now);
        let (head, now) = (column(self.append.head()), column(now.0));
        let Some(summary) = &self.append.summary else {
            let sql = "UPDATE session SET head = ?2, last_append = ?3, updated_ms = ?4, head_sum = ?5 WHERE id = ?1";
            writer
                .prepare_cached(sql)?
                .execute(params![id, head, append_id, now, sum])?;
            return Ok(());
        };
        let mut update = writer.prepare_cached(
            "UPDATE session SET head = ?2, last_append = ?3, updated_ms = ?4, summary = ?5, name = ?6, state = ?7,
             closed = ?8, labels = ?9, resumable = ?10, wake_at_ms = ?11,
             row_sum = agentd_row_sum(uid, ?6, ?7, ?8, ?9, ?10, ?11, ?5), head_sum = ?12 WHERE id = ?1",
        )?;
        update.execute(params![
            id,
            head,
            append_id,
            now,
            self.summary,
            summary.name,
            summary.status.state.as_str(),
            summary.status.state == RunState::Closed,
            self.labels,
            summary.resumable,
            summary.wake_at.map(|at| column(at.0)),
            sum,
        ])?;
        Ok(())
    }
}

/// The row of a session that is not deleted.
pub(crate) fn live(writer: &Connection, session: SessionId) -> rusqlite::Result<Option<i64>> {
    let mut select = writer.prepare_cached("SELECT id FROM session WHERE uid = ?1 AND deleted_ms IS NULL")?;
    select
        .query_row([crate::values::uid(session)], |row| row.get(0))
        .optional()
}

const KEEP_BLOB: &str =
    "INSERT OR IGNORE INTO blob_use(name, session_id, sum) VALUES (?1, ?2, agentd_sum(?1, ?2))";

/// Stores content and records which session uses it.
pub(crate) fn put_blob(writer: &Connection, files: &BlobFiles, blob: &Blob, id: i64) -> rusqlite::Result<()> {
    let small = blob.bytes().len() <= ROW_LIMIT;
    if !small {
        // The file was written and synced before the append was queued; this only repairs a race with the purge.
        files
            .put(blob.name(), blob.bytes())
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    }
    let row = small.then_some(blob.bytes().as_ref());
    writer
        .prepare_cached("INSERT OR IGNORE INTO blob(name, bytes) VALUES (?1, ?2)")?
        .execute(params![blob.name(), row])?;
    writer
        .prepare_cached(KEEP_BLOB)?
        .execute(params![blob.name(), id])?;
    Ok(())
}
