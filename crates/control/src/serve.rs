//! Accepts connections, up to their limit, until shutdown.

use crate::connection::stopping;
use crate::connections::Connections;
use crate::listen::Listener;
use crate::peer::Users;
use agentd_protocol::Fault;
use agentd_wire::{ServerFrame, encode};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};

/// How long open connections may take to end.
const FAREWELL: Duration = Duration::from_secs(6);
/// How long a refused peer may take to read the reason.
const REFUSAL: Duration = Duration::from_secs(1);
/// The pause after the system could not accept a connection (too many open files).
const BREATH: Duration = Duration::from_millis(100);
/// The interval between checks that the socket file still exists; each costs one system call.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Serves the socket until `shutdown` turns true (or its sender is gone); then answers open requests, notifies viewers and
/// closes all connections.
#[expect(
    clippy::disallowed_methods,
    reason = "it reads the users of this machine, once"
)]
pub async fn serve(
    mut listener: Listener,
    connections: Arc<Connections>,
    mut shutdown: watch::Receiver<bool>,
) {
    let users = match tokio::task::spawn_blocking(Users::look_up).await {
        Ok(users) => Arc::new(users),
        Err(error) => {
            tracing::error!(%error, "could not look up the daemon's own user; not serving the socket");
            return;
        }
    };
    let mut open = JoinSet::new();
    let (mut looks, mut trouble) = (interval(LOOK_EVERY), None);
    loop {
        let stream = tokio::select! {
            () = stopping(&mut shutdown) => break,
            Some(_) = open.join_next() => continue,
            _ = looks.tick() => {
                look(&mut listener, &mut trouble);
                continue;
            }
            accepted = listener.socket.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    sleep(BREATH).await;
                    continue;
                }
            },
        };
        let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
        // Peers whose process the system does not report count as one process.
        let Some(connection) = connections.connection(process.unwrap_or(0), shutdown.clone()) else {
            open.spawn(refuse(stream, connections.full()));
            continue;
        };
        let users = Arc::clone(&users);
        open.spawn(async move {
            let admitted = users.admit(&stream);
            connection.run(stream.into_split(), admitted).await;
        });
    }
    drop(listener);
    if timeout(FAREWELL, async { while open.join_next().await.is_some() {} })
        .await
        .is_err()
    {
        tracing::warn!(left = open.len(), "closing connections that did not end in time");
    }
}

/// Recreates a removed socket: without its file no client can reach the daemon, not even to stop it. A persistent error is
/// logged once.
fn look(listener: &mut Listener, trouble: &mut Option<String>) {
    let path = listener.path().display().to_string();
    let found = match listener.mend() {
        Ok(false) => None,
        Ok(true) => {
            tracing::warn!(path, "the control socket was missing; created it again");
            None
        }
        Err(error) => Some(error.to_string()),
    };
    if let Some(error) = &found
        && found != *trouble
    {
        tracing::error!(%error, "the control socket is missing, and agentd could not create it again");
    }
    *trouble = found;
}

/// Sends the reason to a refused peer, if it reads in time.
async fn refuse(mut stream: UnixStream, fault: Fault) {
    if let Ok(bytes) = encode(&ServerFrame::Fault { id: None, fault }, 4_096) {
        // If even that cannot be sent, the peer sees the end of the stream.
        let _ = timeout(REFUSAL, stream.write_all(&bytes)).await;
    }
}
