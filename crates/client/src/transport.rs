//! Frames over a Unix socket or a WebSocket: one body at a time in, whole frames out.

use crate::error::ClientError;
use agentd_wire::{Decoder, FrameLimits};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// How often a WebSocket is pinged, so that a network that is gone is noticed.
const PING: Duration = Duration::from_secs(10);
/// After this long without anything, not even an answer to a ping, the connection is lost.
const SILENCE: Duration = Duration::from_secs(35);
/// The length of a frame before its body; a WebSocket message has its own.
const PREFIX: usize = 4;

type Web = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The receiving half.
pub(crate) enum Incoming {
    Socket(OwnedReadHalf, Decoder),
    Web(SplitStream<Web>),
}

/// The sending half.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Socket(OwnedWriteHalf),
    Web(SplitSink<Web, Message>),
}

impl Incoming {
    pub(crate) fn socket(read: OwnedReadHalf) -> Self {
        Self::Socket(read, Decoder::new(FrameLimits::of_answers()))
    }

    pub(crate) const fn web(read: SplitStream<Web>) -> Self {
        Self::Web(read)
    }

    /// The body of the next frame.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, ClientError> {
        match self {
            Self::Socket(read, decoder) => from_socket(read, decoder).await,
            Self::Web(read) => from_web(read).await,
        }
    }
}

async fn from_socket(read: &mut OwnedReadHalf, decoder: &mut Decoder) -> Result<Vec<u8>, ClientError> {
    let mut chunk = [0; 16_384];
    loop {
        if let Some(body) = decoder.next_frame()? {
            return Ok(body);
        }
        match read.read(&mut chunk).await {
            Ok(0) => return Err(ClientError::Lost("closed by the daemon".to_owned())),
            Ok(length) => decoder.feed(chunk.get(..length).unwrap_or_default()),
            Err(error) => return Err(ClientError::Lost(error.to_string())),
        }
    }
}

async fn from_web(read: &mut SplitStream<Web>) -> Result<Vec<u8>, ClientError> {
    loop {
        let message = timeout(SILENCE, read.next()).await.map_err(|_| {
            let why = format!("the daemon is silent for {} s", SILENCE.as_secs());
            ClientError::Lost(why)
        })?;
        match message {
            Some(Ok(Message::Binary(body))) => return Ok(body.into()),
            // An answer to a ping, or a ping that the library answers.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Text(_))) => {
                return Err(ClientError::Lost(
                    "the daemon sent a text message instead of a binary frame".to_owned(),
                ));
            }
            Some(Ok(Message::Close(_))) | None => {
                return Err(ClientError::Lost("closed by the daemon".to_owned()));
            }
            Some(Err(error)) => return Err(ClientError::Lost(error.to_string())),
        }
    }
}

impl Outgoing {
    pub(crate) const fn web(write: SplitSink<Web, Message>) -> Self {
        Self::Web(write)
    }

    /// Sends a frame, given with its length before it.
    pub(crate) async fn send(&mut self, frame: Vec<u8>) -> Result<(), String> {
        match self {
            Self::Socket(write) => write.write_all(&frame).await.map_err(|error| error.to_string()),
            Self::Web(write) => {
                let body = Bytes::from(frame).split_off(PREFIX);
                write
                    .send(Message::Binary(body))
                    .await
                    .map_err(|error| error.to_string())
            }
        }
    }

    /// Sends frames as they come, and pings in between. Ends with the queue or the connection.
    pub(crate) async fn run(mut self, mut frames: mpsc::Receiver<Vec<u8>>) {
        let mut pings = interval(PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let sent = tokio::select! {
                frame = frames.recv() => match frame {
                    Some(frame) => self.send(frame).await,
                    None => return self.close().await,
                },
                _ = pings.tick() => self.ping().await,
            };
            if sent.is_err() {
                // The reader sees the end of the stream, preceded by the daemon's reason if it sent one.
                return;
            }
        }
    }

    async fn ping(&mut self) -> Result<(), String> {
        match self {
            Self::Socket(_) => Ok(()),
            Self::Web(write) => {
                let ping = write.send(Message::Ping(Bytes::new()));
                ping.await.map_err(|error| error.to_string())
            }
        }
    }

    async fn close(mut self) {
        if let Self::Web(write) = &mut self {
            // The other side may be gone.
            let _ = timeout(PING, write.close()).await;
        }
    }
}
