//! Forwards bytes, with an idle timeout.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};

/// The idle timeout of a connection.
const SILENCE: Duration = Duration::from_secs(600);
/// When bytes last passed over a connection, in either direction.
struct Heard {
    begun: Instant,
    last_ms: AtomicU64,
}

impl Heard {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            last_ms: AtomicU64::new(0),
        }
    }

    fn now(&self) {
        let ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(ms, Ordering::Relaxed);
    }

    fn silent(&self) -> bool {
        let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(last) >= SILENCE
    }
}

const CHUNK: usize = 16 << 10;

/// Forwards bytes in both directions until both have ended, or the connection is idle for too long.
pub(crate) async fn both_ways(inside: UnixStream, outside: TcpStream, first: &[u8]) -> io::Result<()> {
    let (mut from_inside, mut to_inside) = inside.into_split();
    let (mut from_outside, mut to_outside) = outside.into_split();
    to_outside.write_all(first).await?;
    let heard = Heard::new();
    let there = async {
        pass(&mut from_inside, &mut to_outside, u64::MAX, &heard).await?;
        to_outside.shutdown().await
    };
    let back = async {
        pass(&mut from_outside, &mut to_inside, u64::MAX, &heard).await?;
        to_inside.shutdown().await
    };
    tokio::try_join!(there, back).map(drop)
}

/// Sends one request and returns its response. Does not forward bytes after the request: they could be a second request,
/// which was never judged.
pub(crate) async fn answer(
    inside: UnixStream,
    outside: TcpStream,
    head: &[u8],
    first: &[u8],
    body: u64,
) -> io::Result<()> {
    let (mut from_inside, mut to_inside) = inside.into_split();
    let (mut from_outside, mut to_outside) = outside.into_split();
    to_outside.write_all(head).await?;
    let held = usize::try_from(body).unwrap_or(usize::MAX).min(first.len());
    to_outside
        .write_all(first.get(..held).unwrap_or_default())
        .await?;
    let heard = Heard::new();
    let left = body.saturating_sub(u64::try_from(held).unwrap_or(u64::MAX));
    let there = async {
        pass(&mut from_inside, &mut to_outside, left, &heard).await?;
        // The response decides when the exchange is over; the client's further bytes do not.
        std::future::pending::<io::Result<()>>().await
    };
    let back = async {
        pass(&mut from_outside, &mut to_inside, u64::MAX, &heard).await?;
        to_inside.shutdown().await
    };
    tokio::select! {
        ended = there => ended,
        ended = back => ended,
    }
}

/// Forwards at most `left` bytes.
async fn pass(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut left: u64,
    heard: &Heard,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    while left > 0 {
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK);
        let buffer = chunk.get_mut(..room).unwrap_or_default();
        let count = match timeout(SILENCE, from.read(buffer)).await {
            Ok(count) => count?,
            // The other direction may be active.
            Err(_) if !heard.silent() => continue,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        heard.now();
        if count == 0 {
            return Ok(());
        }
        left -= u64::try_from(count).unwrap_or(0);
        to.write_all(chunk.get(..count).unwrap_or_default()).await?;
    }
    Ok(())
}
