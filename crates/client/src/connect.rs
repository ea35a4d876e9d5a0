//! Opens a connection: connect, hello and welcome, all within one deadline.

use crate::error::ClientError;
use crate::transport::{Incoming, Outgoing};
use agentd_wire::{ClientFrame, FrameLimits, Hello, ServerFrame, VersionRange, Welcome, decode, encode};
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;

/// Options for connecting.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The client program and its version, for the daemon's log.
    pub client: String,
    /// The time limit for connecting and receiving the welcome together.
    pub deadline: Duration,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            client: concat!("agentd-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            deadline: Duration::from_secs(5),
        }
    }
}

/// A connection after the welcome.
pub(crate) struct Greeted {
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    pub(crate) welcome: Welcome,
}

pub(crate) async fn greet(path: &Path, options: &ConnectOptions) -> Result<Greeted, ClientError> {
    let unreachable = |why: String| ClientError::Unreachable {
        address: path.display().to_string(),
        why,
    };
    let attempt = async {
        let stream = UnixStream::connect(path)
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        let (read, write) = stream.into_split();
        say_hello(Incoming::socket(read), Outgoing::Socket(write), options).await
    };
    tokio::time::timeout(options.deadline, attempt)
        .await
        .unwrap_or_else(|_| {
            Err(unreachable(format!(
                "no welcome within {} ms",
                options.deadline.as_millis()
            )))
        })
}

pub(crate) async fn say_hello(
    mut incoming: Incoming,
    mut outgoing: Outgoing,
    options: &ConnectOptions,
) -> Result<Greeted, ClientError> {
    let hello = ClientFrame::Hello(Hello {
        protocol: VersionRange::OURS,
        client: options.client.clone(),
        token: None,
    });
    let limits = FrameLimits::of_answers();
    // A daemon that refuses us may close before it reads, so ignore a write error until its fault has been read.
    let written = outgoing.send(encode(&hello, limits.max_frame_bytes)?).await;
    let body = incoming.next().await.map_err(|error| match (error, written) {
        (ClientError::Lost(_), Err(why)) => ClientError::Lost(why),
        (ClientError::Lost(why), Ok(())) => ClientError::Lost(format!("{why} before the welcome")),
        (other, _) => other,
    })?;
    match decode::<ServerFrame>(&body, limits)? {
        ServerFrame::Welcome(welcome) => Ok(Greeted {
            incoming,
            outgoing,
            welcome,
        }),
        ServerFrame::Fault { fault, .. } => Err(ClientError::Refused(fault)),
        ServerFrame::Ok { .. } | ServerFrame::Push { .. } | ServerFrame::Unknown => Err(ClientError::Lost(
            "the daemon's first frame is not a welcome".to_owned(),
        )),
    }
}
