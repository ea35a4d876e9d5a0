//! Passing bytes on, with an end to every silence.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};

/// A connection over which nothing goes for so long is closed.
const SILENCE: Duration = Duration::from_secs(600);
/// When something last went over a connection, in either direction.
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

/// Passes bytes on in both directions until both have ended, or nothing goes for a while.
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

/// Sends one request and passes its answer back. What the other side sends behind the request is not passed on: it could
/// be a second request, which nobody judged.
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
        // The answer decides when it is over, whatever else is said.
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

/// Passes at most so many bytes on.
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
            // The other direction may be at work.
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
