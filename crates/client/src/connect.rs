//! Opens a connection: connect, hello and welcome, all within one deadline.

use crate::error::ClientError;
use agentd_wire::{
    ClientFrame, Decoder, FrameLimits, Hello, ServerFrame, VersionRange, Welcome, decode, encode,
};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Options for connecting.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The client program and its version, for the daemon's log.
    pub client: String,
    /// Proof of identity, where access to the socket alone is not enough.
    pub token: Option<String>,
    /// The time limit for connecting and receiving the welcome together.
    pub deadline: Duration,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            client: concat!("agentd-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            token: None,
            deadline: Duration::from_secs(5),
        }
    }
}

/// A connection after the welcome. The decoder may already hold the start of further frames.
pub(crate) struct Greeted {
    pub(crate) stream: UnixStream,
    pub(crate) decoder: Decoder,
    pub(crate) welcome: Welcome,
}

pub(crate) async fn greet(path: &Path, options: &ConnectOptions) -> Result<Greeted, ClientError> {
    let unreachable = |why: String| ClientError::Unreachable {
        path: path.to_owned(),
        why,
    };
    let attempt = async {
        let stream = UnixStream::connect(path)
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        say_hello(stream, options).await
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

async fn say_hello(mut stream: UnixStream, options: &ConnectOptions) -> Result<Greeted, ClientError> {
    let lost = |error: std::io::Error| ClientError::Lost(error.to_string());
    let hello = ClientFrame::Hello(Hello {
        protocol: VersionRange::OURS,
        client: options.client.clone(),
        token: options.token.clone(),
    });
    let limits = FrameLimits::of_answers();
    // A daemon that refuses us may close before it reads, so ignore a write error until its fault has been read.
    let written = stream.write_all(&encode(&hello, limits.max_frame_bytes)?).await;
    let mut decoder = Decoder::new(limits);
    let mut chunk = [0; 4_096];
    let body = loop {
        if let Some(body) = decoder.next_frame()? {
            break body;
        }
        let read = stream.read(&mut chunk).await.map_err(lost)?;
        if read == 0 {
            let why = written
                .err()
                .map_or_else(|| "closed before the welcome".to_owned(), |e| e.to_string());
            return Err(ClientError::Lost(why));
        }
        decoder.feed(chunk.get(..read).unwrap_or_default());
    };
    match decode::<ServerFrame>(&body, limits)? {
        ServerFrame::Welcome(welcome) => Ok(Greeted {
            stream,
            decoder,
            welcome,
        }),
        ServerFrame::Fault { fault, .. } => Err(ClientError::Refused(fault)),
        ServerFrame::Ok { .. } | ServerFrame::Push { .. } | ServerFrame::Unknown => Err(ClientError::Lost(
            "the daemon's first frame is not a welcome".to_owned(),
        )),
    }
}
