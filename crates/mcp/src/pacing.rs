//! Protects other work from a server that sends too much.

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, sleep_until};

/// Longest message from a server.
pub(crate) const MAX_MESSAGE: usize = 8 << 20;
/// A server is ended after this many bytes without a valid message.
const MAX_NONSENSE: u64 = 32 << 20;
/// The most messages to read per second; further ones wait in the server's pipe.
const PER_SECOND: u32 = 1_000;
/// The most pending requests of a server. One that keeps sending requests without reading the answers is ended.
const MAX_ASKED: usize = 64;

/// Bytes read since the last message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nonsense(Arc<AtomicU64>);

/// A server's output, which ends after too many bytes without a message.
pub(crate) struct Sober<R> {
    inner: R,
    nonsense: Nonsense,
}

impl<R> Sober<R> {
    pub(crate) const fn new(inner: R, nonsense: Nonsense) -> Self {
        Self { inner, nonsense }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Sober<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        let count = u64::try_from(buf.filled().len().saturating_sub(before)).unwrap_or(u64::MAX);
        let total = self.nonsense.0.fetch_add(count, Ordering::Relaxed);
        if total.saturating_add(count) > MAX_NONSENSE {
            return Poll::Ready(Err(io::Error::other("too much output that is not a message")));
        }
        read
    }
}

/// A transport that reads at a limited rate, and ends when the server has too many pending requests.
pub(crate) struct Paced<T> {
    inner: T,
    nonsense: Nonsense,
    asked: Arc<AtomicUsize>,
    since: Instant,
    read: u32,
}

impl<T> Paced<T> {
    pub(crate) fn new(inner: T, nonsense: Nonsense) -> Self {
        Self {
            inner,
            nonsense,
            asked: Arc::default(),
            since: Instant::now(),
            read: 0,
        }
    }

    /// Waits while this second's messages are used up. Cancel-safe.
    async fn pace(&mut self) {
        let end = self.since + Duration::from_secs(1);
        if self.read >= PER_SECOND {
            sleep_until(end).await;
        }
        if Instant::now() >= end {
            self.since = Instant::now();
            self.read = 0;
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Paced<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answers = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let asked = Arc::clone(&self.asked);
        let sending = self.inner.send(item);
        async move {
            let sent = sending.await;
            if answers {
                let less = |count: usize| Some(count.saturating_sub(1));
                let _ = asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.pace().await;
        let message = self.inner.receive().await?;
        self.read += 1;
        self.nonsense.0.store(0, Ordering::Relaxed);
        if matches!(message, JsonRpcMessage::Request(_))
            && self.asked.fetch_add(1, Ordering::Relaxed) >= MAX_ASKED
        {
            tracing::warn!("closing the connection to a tool server that sends too many requests");
            return None;
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
