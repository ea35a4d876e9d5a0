//! The requirements on a server, so that an acknowledged append is durable (I1) and fenced (I9).

use crate::error::store_error;
use crate::server::Server;
use agentd_store::StoreError;
use tokio_postgres::Client;

const FACTS: &str = "SELECT current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
  pg_is_in_recovery(), current_setting('server_encoding') = 'UTF8', current_setting('server_version_num')::int,
  current_setting('synchronous_standby_names') = '',
  coalesce((SELECT count(*) FROM pg_stat_replication), 0), pg_backend_pid()";

/// The oldest supported version.
const OLDEST: i32 = 140_000;

const NOT_SYNCHRONOUS: &str = "the database has a standby, but does not wait for it, so a failover loses \
   acknowledged events; set synchronous_standby_names";

/// What a server says of itself.
struct Facts {
    refusal: Option<&'static str>,
    warning: Option<&'static str>,
    pid: i32,
}

/// The problems of the server now: its settings may have changed since it was opened.
pub(crate) async fn warnings(client: &Client) -> Result<Vec<String>, StoreError> {
    let facts = facts(client).await?;
    let found = facts.refusal.into_iter().chain(facts.warning);
    Ok(found.map(str::to_owned).collect())
}

/// Refuses a server that would lose what it acknowledges, and a pooler that mixes connections.
pub(crate) async fn check(server: &Server, client: &Client) -> Result<(), StoreError> {
    let facts = facts(client).await?;
    if let Some(why) = facts.refusal {
        return Err(unsuitable(server, why));
    }
    if let Some(warning) = facts.warning {
        tracing::warn!(%server, "{warning}");
    }
    not_pooled(server, client, facts.pid).await
}

async fn facts(client: &Client) -> Result<Facts, StoreError> {
    let facts = client
        .query_one(FACTS, &[])
        .await
        .map_err(|error| store_error(&error))?;
    let refusals = [
        (
            !facts.get::<_, bool>(0),
            "fsync is off, so a crash of the machine loses acknowledged events; set fsync = on",
        ),
        (
            !facts.get::<_, bool>(1),
            "full_page_writes is off, so a crash of the machine damages pages; set full_page_writes = on",
        ),
        (
            facts.get(2),
            "it is a standby; give the primary, or all hosts and target_session_attrs=read-write",
        ),
        (
            !facts.get::<_, bool>(3),
            "its encoding is not UTF8; create the database with ENCODING 'UTF8' TEMPLATE template0",
        ),
        (
            facts.get::<_, i32>(4) < OLDEST,
            "it is older than PostgreSQL 14; upgrade it",
        ),
    ];
    let refusal = refusals.iter().find(|(wrong, _)| *wrong);
    let lags = facts.get::<_, bool>(5) && facts.get::<_, i64>(6) > 0;
    Ok(Facts {
        refusal: refusal.map(|(_, why)| *why),
        warning: lags.then_some(NOT_SYNCHRONOUS),
        pid: facts.get(7),
    })
}

/// A pooler in transaction mode gives one connection of the server to two clients that are connected at the same time.
async fn not_pooled(server: &Server, client: &Client, pid: i32) -> Result<(), StoreError> {
    let other = server.connect().await?;
    let mut seen = vec![pid];
    for client in [&other, client, &other] {
        let row = client.query_one("SELECT pg_backend_pid()", &[]).await;
        seen.push(row.map_err(|error| store_error(&error))?.get(0));
    }
    match seen.as_slice() {
        [a, b, c, d] if a == c && b == d && a != b => Ok(()),
        _ => Err(unsuitable(
            server,
            "a connection pooler in transaction mode is in between; connect to the server itself, or to a pool in session mode",
        )),
    }
}

fn unsuitable(server: &Server, why: &str) -> StoreError {
    StoreError::Unsuitable {
        server: server.to_string(),
        why: why.to_owned(),
    }
}
