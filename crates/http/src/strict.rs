//! A connection whose requests have one reading only. What [`Framing`] refuses never reaches hyper.

use crate::framing::{Framing, Refused};
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Whether a connection has left HTTP. Its stream and its requests share this.
#[derive(Debug, Default)]
pub(crate) struct Upgrade {
    /// The last byte that was read is the end of a request.
    between: AtomicBool,
    done: AtomicBool,
}

impl Upgrade {
    /// Leaves HTTP. Refused if the client has sent more than the request: those bytes were read as HTTP.
    pub(crate) fn leave_http(&self) -> bool {
        let clean = self.between.load(Ordering::Acquire);
        self.done.store(clean, Ordering::Release);
        clean
    }
}

/// A stream of requests.
#[derive(Debug)]
pub(crate) struct Strict<S> {
    stream: S,
    framing: Framing,
    upgrade: Arc<Upgrade>,
    refused: Option<Refused>,
}

impl<S> Strict<S> {
    pub(crate) fn new(stream: S, upgrade: Arc<Upgrade>) -> Self {
        Self {
            stream,
            framing: Framing::new(),
            upgrade,
            refused: None,
        }
    }

    /// Judges the bytes behind the first `before`, and cuts them where they are refused.
    fn judge(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        let fresh = buffer.filled().get(before..).unwrap_or_default();
        let result = self.framing.feed(fresh);
        self.upgrade
            .between
            .store(self.framing.between(), Ordering::Release);
        let Err(refused) = result else { return };
        tracing::debug!("an HTTP request has two readings; refusing it");
        self.refused = Some(refused);
        let end = before + refused.at;
        buffer.set_filled(end);
        if refused.in_head {
            // hyper answers 400 to this byte, wherever it is in a head.
            buffer.put_slice(b"\0");
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Strict<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        match self.refused {
            Some(Refused { in_head: true, .. }) => return Poll::Ready(Ok(())),
            Some(_) => {
                let why = "the body is not framed as RFC 9112 says";
                return Poll::Ready(Err(Error::new(ErrorKind::InvalidData, why)));
            }
            None => {}
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if !self.upgrade.done.load(Ordering::Acquire) && buffer.filled().len() > before {
            self.judge(buffer, before);
            if buffer.filled().len() == before {
                // No bytes would mean the end of the stream.
                return self.poll_read(context, buffer);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Strict<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
