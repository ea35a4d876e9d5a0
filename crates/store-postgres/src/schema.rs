//! The tables and their versions.

use crate::error::store_error;
use crate::server::SCHEMA;
use agentd_store::StoreError;
use tokio_postgres::Client;

/// One migration per version, applied in order. Never change a released migration.
const MIGRATIONS: [&str; 9] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
    include_str!("schema/9.sql"),
];

/// The key of the lock for migrations.
const LOCK: i64 = 0x6167_7464_0001;

/// Applies the migrations that the database lacks, all in one transaction. Refuses a database with more migrations than
/// we know, and leaves it unchanged.
pub(crate) async fn migrate(client: &Client) -> Result<(), StoreError> {
    let begun = client.batch_execute("BEGIN").await;
    begun.map_err(|error| store_error(&error))?;
    let done = apply(client, &MIGRATIONS).await;
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = client.batch_execute(end).await;
    done?;
    ended.map_err(|error| store_error(&error))
}

async fn apply(client: &Client, steps: &[&str]) -> Result<(), StoreError> {
    let run = async |sql: &str| {
        let done = client.batch_execute(sql).await;
        done.map_err(|error| store_error(&error))
    };
    run(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let exists = "SELECT to_regnamespace($1::text) IS NOT NULL AND to_regclass($1 || '.version') IS NOT NULL";
    let exists = client.query_one(exists, &[&SCHEMA]).await;
    let exists: bool = exists.map_err(|error| store_error(&error))?.get(0);
    if !exists {
        run(&format!(
            "CREATE SCHEMA IF NOT EXISTS {SCHEMA}; CREATE TABLE version(version int NOT NULL); INSERT INTO version VALUES (0)"
        ))
        .await?;
    }
    let found = client.query_one("SELECT version::bigint FROM version", &[]).await;
    let found: i64 = found.map_err(|error| store_error(&error))?.get(0);
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(StoreError::NewerVersion { found, known });
    }
    for (version, step) in (1_i64..).zip(steps).filter(|(version, _)| *version > found) {
        run(step).await?;
        run(&format!("UPDATE version SET version = {version}")).await?;
    }
    Ok(())
}
