//! One agentd uses a database: a lock that the server holds for the connection of the one that has it.

use crate::error::store_error;
use crate::server::Server;
use agentd_store::StoreError;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// The key of the lock.
const LOCK: i64 = 0x6167_7464_0002;
/// How often the connection is checked.
const EVERY: Duration = Duration::from_secs(2);

/// Holds the lock, and takes it again after a lost connection. Dropping it gives up the lock.
#[derive(Debug)]
pub(crate) struct Guard(JoinHandle<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Takes the lock, and returns the server's process for this connection. `None`: another connection has it.
async fn take(client: &Client) -> Result<Option<i32>, StoreError> {
    let sql = format!("SELECT pg_try_advisory_lock({LOCK}), pg_backend_pid()");
    let row = client.query_one(&sql, &[]).await;
    let row = row.map_err(|error| store_error(&error))?;
    Ok(row.get::<_, bool>(0).then(|| row.get(1)))
}

impl Guard {
    /// Takes the lock of this connection. When another agentd gets it later, because the connection was lost, `fatal`
    /// receives the reason: until then the epochs of the sessions keep the two apart (I9).
    pub(crate) async fn start(
        server: Server,
        client: Client,
        fatal: watch::Sender<Option<String>>,
    ) -> Result<Self, StoreError> {
        let pid = take(&client).await?.ok_or_else(|| StoreError::Occupied {
            server: server.to_string(),
        })?;
        Ok(Self(tokio::spawn(async move {
            let taken = keep(server, client, pid).await;
            tracing::error!(error = taken, "the store is stopping permanently");
            fatal.send_replace(Some(taken));
        })))
    }
}

/// Returns when another agentd has the lock.
async fn keep(server: Server, mut client: Client, mut pid: i32) -> String {
    let mut rounds = tokio::time::interval(EVERY);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let alive = tokio::time::timeout(EVERY * 5, client.batch_execute("SELECT 1")).await;
        if matches!(alive, Ok(Ok(()))) {
            continue;
        }
        let Ok(new) = server.connect().await else {
            continue;
        };
        match take(&new).await {
            Ok(Some(taken)) => (client, pid) = (new, taken),
            Ok(None) if !still_ours(&new, pid).await => {
                return format!("another agentd has taken over the database {server}");
            }
            Ok(None) | Err(_) => {}
        }
    }
}

/// Whether the server has not yet noticed that our lost connection is gone.
async fn still_ours(client: &Client, pid: i32) -> bool {
    let sql = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = $1";
    client
        .query_opt(sql, &[&pid])
        .await
        .is_ok_and(|row| row.is_some())
}
