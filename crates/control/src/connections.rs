//! The resources that connections of all transports share: seats, and memory for frames.

use crate::connection::Connection;
use agentd_admission::{Budget, Seats, Shares};
use agentd_api::Api;
use agentd_protocol::{Fault, Principal};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, split};
use tokio::sync::watch;

/// The process number of connections that come from other machines: they share one allowance of seats.
const REMOTE: i32 = -1;

/// Serves the control protocol on connections.
#[derive(Debug)]
pub struct Connections {
    api: Arc<Api>,
    seats: Arc<Seats<i32>>,
    most: usize,
    frames: Arc<Budget>,
}

impl Connections {
    /// Creates the seats for connections to this api.
    #[must_use]
    pub fn new(api: Arc<Api>) -> Self {
        let loaded = api.loaded();
        let limits = &loaded.settings.limits;
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let (most, reserved) = (count(limits.connections), count(limits.connections_reserved));
        Self {
            seats: Seats::new(Shares {
                most,
                reserved,
                strangers: most,
                grace: Duration::ZERO,
            }),
            most,
            frames: Arc::clone(api.memory()),
            api,
        }
    }

    /// Serves a remote client over a stream of frames until it ends, or `shutdown` turns true. The transport has
    /// authenticated the client.
    pub async fn serve_remote(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        who: Principal,
        shutdown: watch::Receiver<bool>,
    ) {
        let (admitted, connection) = match self.connection(REMOTE, shutdown) {
            Some(connection) => (Ok(who), connection),
            None => return tracing::info!(%who, "{}", self.full()),
        };
        let connection = Connection {
            local: false,
            ..connection
        };
        connection.run(split(stream), admitted).await;
    }

    /// Takes a seat for a connection of a local process; `None` while all are busy.
    pub(crate) fn connection(&self, process: i32, shutdown: watch::Receiver<bool>) -> Option<Connection> {
        let seat = self.seats.take(process)?;
        Some(Connection {
            api: Arc::clone(&self.api),
            shutdown,
            frames: Arc::clone(&self.frames),
            seat: Arc::new(seat),
            local: true,
        })
    }

    /// The fault for a client when all seats are taken.
    pub(crate) fn full(&self) -> Fault {
        let most = self.most;
        Fault::busy(
            "too_many_connections",
            format!("the daemon serves at most {most} connections, and none of them is idle"),
        )
        .hint("close some, or raise limits.connections")
    }
}
