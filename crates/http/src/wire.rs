//! `/v1/wire`: the control protocol over WebSocket. A binary message is one frame, without the length prefix.

use crate::call::caller;
use crate::link::Link;
use crate::problem::Problem;
use crate::router::App;
use agentd_protocol::{Fault, Principal};
use async_trait::async_trait;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts as _, Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::sink::SinkExt as _;
use futures_util::stream::{SplitSink, SplitStream};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::watch;
use tokio::time::{Instant, interval_at, timeout};

/// Bytes on the way between the two sides.
const BUFFER: usize = 64 << 10;
/// The time limit for sending one message.
const SEND: Duration = Duration::from_secs(30);
/// How often an idle connection is pinged, so that proxies keep it and a dead peer is noticed.
const PING: Duration = Duration::from_secs(20);

/// Serves the control protocol over a stream of frames with length prefixes, as on the socket.
#[async_trait]
pub trait Wire: Debug + Send + Sync {
    /// Serves an authenticated client until it ends, or `shutdown` turns true.
    async fn serve(&self, stream: DuplexStream, who: Principal, shutdown: watch::Receiver<bool>);
}

/// `GET /v1/wire`.
pub(crate) async fn upgrade(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let who = caller(&parts)?;
    let open = app.streams.open(&who)?;
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &())
        .await
        .map_err(|error| {
            let message = format!("this is not a WebSocket request: {}", error.body_text());
            Problem::with(error.status(), Fault::invalid("not_websocket", message))
        })?;
    if !Link::of(&parts)?.upgrade.leave_http() {
        let message = "frames came before the answer that accepts the WebSocket";
        return Err(Fault::invalid("not_websocket", message)
            .hint("wait for the status 101")
            .into());
    }
    let limit = app.api.loaded().settings.limits.max_frame_bytes;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let upgrade = upgrade.max_message_size(limit).max_frame_size(limit);
    Ok(upgrade.on_upgrade(async move |socket| {
        carry(socket, &app, who).await;
        drop(open);
    }))
}

/// Carries frames between a WebSocket and the protocol's own code, until either ends.
async fn carry(socket: WebSocket, app: &App, who: Principal) {
    let (wire, shutdown) = (Arc::clone(&app.wire), app.shutdown.clone());
    let (near, far) = duplex(BUFFER);
    let (from_daemon, to_daemon) = split(near);
    let (to_client, from_client) = socket.split();
    let serving = tokio::spawn(async move { wire.serve(far, who, shutdown).await });
    let reading = tokio::spawn(inward(from_client, to_daemon));
    outward(from_daemon, to_client).await;
    reading.abort();
    serving.abort();
}

/// Adds the length to each message.
async fn inward(mut client: SplitStream<WebSocket>, mut daemon: WriteHalf<DuplexStream>) {
    while let Some(Ok(message)) = client.next().await {
        let body = match message {
            Message::Binary(body) => body,
            Message::Ping(_) | Message::Pong(_) => continue,
            // The daemon answers frames that it cannot read with a fault, so an empty frame will do for a text.
            Message::Text(_) => Bytes::new(),
            Message::Close(_) => break,
        };
        let Ok(length) = u32::try_from(body.len()) else {
            break;
        };
        if daemon.write_all(&length.to_be_bytes()).await.is_err() || daemon.write_all(&body).await.is_err() {
            return;
        }
    }
    // The daemon answers what it has read, then ends.
    let _ = daemon.shutdown().await;
}

/// Takes the length from each frame.
async fn outward(mut daemon: ReadHalf<DuplexStream>, mut client: SplitSink<WebSocket, Message>) {
    let mut pings = interval_at(Instant::now() + PING, PING);
    loop {
        let message = tokio::select! {
            length = daemon.read_u32() => match length {
                Ok(length) => {
                    let mut body = vec![0; usize::try_from(length).unwrap_or(0)];
                    if daemon.read_exact(&mut body).await.is_err() {
                        return;
                    }
                    Message::Binary(Bytes::from(body))
                }
                Err(_) => break,
            },
            _ = pings.tick() => Message::Ping(Bytes::new()),
        };
        if !matches!(timeout(SEND, client.send(message)).await, Ok(Ok(()))) {
            return;
        }
    }
    let close = CloseFrame {
        code: close_code::NORMAL,
        reason: "".into(),
    };
    // The client may be gone.
    let _ = timeout(SEND, client.send(Message::Close(Some(close)))).await;
}
