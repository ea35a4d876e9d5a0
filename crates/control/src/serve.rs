//! Taking connections, within their limit, until it is time to stop.

use crate::connection::{Connection, stopping};
use crate::listen::Listener;
use crate::peer::Users;
use agentd_api::Api;
use agentd_protocol::Fault;
use agentd_wire::{ServerFrame, encode};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long open connections may take to end.
const FAREWELL: Duration = Duration::from_secs(6);
/// How long a refused peer may take to read why.
const REFUSAL: Duration = Duration::from_secs(1);
/// A pause after the system could not give us a connection (too many open files).
const BREATH: Duration = Duration::from_millis(100);

/// Serves the socket until `shutdown` turns true (or its sender is gone); then open requests get their answers, viewers
/// are told, and all connections are closed.
pub async fn serve(listener: Listener, api: Arc<Api>, mut shutdown: watch::Receiver<bool>) {
    let users = match tokio::task::spawn_blocking(Users::look_up).await {
        Ok(users) => Arc::new(users),
        Err(error) => {
            tracing::error!(%error, "the daemon's own user cannot be looked up; the socket is not served");
            return;
        }
    };
    let most = usize::try_from(api.settings().limits.connections).unwrap_or(usize::MAX);
    let room = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    let mut open = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = stopping(&mut shutdown) => break,
            Some(_) = open.join_next() => continue,
            accepted = listener.socket.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    sleep(BREATH).await;
                    continue;
                }
            },
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            open.spawn(refuse(stream, most));
            continue;
        };
        let connection = Connection {
            api: Arc::clone(&api),
            shutdown: shutdown.clone(),
        };
        let users = Arc::clone(&users);
        open.spawn(async move {
            connection.run(stream, &users).await;
            drop(permit);
        });
    }
    drop(listener);
    if timeout(FAREWELL, async { while open.join_next().await.is_some() {} })
        .await
        .is_err()
    {
        tracing::warn!(
            left = open.len(),
            "connections did not end in time and are cut off"
        );
    }
}

/// Says why, to a peer that takes it at once.
async fn refuse(mut stream: UnixStream, most: usize) {
    let fault = Fault::busy(
        "too_many_connections",
        format!("the daemon has {most} connections already"),
    )
    .hint("close some, or raise limits.connections");
    if let Ok(bytes) = encode(&ServerFrame::Fault { id: None, fault }, 4_096) {
        // If even that does not go out the peer sees the end of the stream.
        let _ = timeout(REFUSAL, stream.write_all(&bytes)).await;
    }
}
