//! Idempotency keys and accounts: a damaged one is refused, not used.

use crate::error::Error;
use crate::row_sum;
use crate::values::{column, size};
use agentd_protocol::{Principal, Timestamp};
use agentd_store::backend::KEY_LIFE_MS;
use agentd_store::cell_sum::{CHARGE, IDEMPOTENCY};
use agentd_store::{Charge, StoreError, StoredKey};
use rusqlite::{Connection, OptionalExtension, params};
use std::sync::LazyLock;

static KEY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT method, body_hash, answer, at_ms > ?3 FROM idempotency
         WHERE principal = ?1 AND key = ?2 AND {}",
        row_sum::whole(&IDEMPOTENCY)
    )
});

static CHARGED: LazyLock<String> = LazyLock::new(|| {
    let whole = row_sum::whole(&CHARGE);
    format!("SELECT tokens, micro_usd, {whole} FROM charge WHERE account = ?1")
});

pub(crate) fn key(
    reader: &Connection,
    principal: &Principal,
    key: &str,
    now: Timestamp,
) -> Result<Option<StoredKey>, Error> {
    let mut select = reader.prepare_cached(&KEY)?;
    let oldest = column(now.0.saturating_sub(KEY_LIFE_MS));
    let found = select.query_row(params![principal.0, key, oldest], |row| {
        let found = StoredKey {
            method: row.get(0)?,
            body_hash: row.get(1)?,
            answer: row.get(2)?,
        };
        Ok(row.get::<_, bool>(3)?.then_some(found))
    });
    if let Some(found) = found.optional()? {
        return Ok(found);
    }
    // Its answer is unknown, and whether the command was carried out.
    let damaged = "SELECT 1 FROM idempotency WHERE principal = ?1 AND key = ?2";
    if reader
        .prepare_cached(damaged)?
        .exists(params![principal.0, key])?
    {
        return Err(StoreError::DamagedEntry(format!("the answer of the idempotency key {key:?}")).into());
    }
    Ok(None)
}

pub(crate) fn charged(reader: &Connection, account: &str) -> Result<Charge, Error> {
    let mut select = reader.prepare_cached(&CHARGED)?;
    let found = select
        .query_row([account], |row| {
            Ok((size(row.get(0)?), size(row.get(1)?), row.get(2)?))
        })
        .optional()?;
    let (tokens, micro_usd, whole) = found.unwrap_or((0, 0, true));
    if !whole {
        return Err(StoreError::DamagedEntry(format!("the account {account:?}")).into());
    }
    Ok(Charge {
        account: account.to_owned(),
        tokens,
        micro_usd,
    })
}
