//! Reads frames from a stream of bytes, each within its deadline and its limits.

use agentd_admission::{Account, Hold};
use agentd_wire::{ClientFrame, Decoder, FrameLimits, WireError, decode_client};
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, timeout_at};

/// The time limit for a frame, from its first byte to its last.
pub(crate) const FRAME: Duration = Duration::from_secs(10);
const CHUNK: usize = 16_384;

/// Why no further frame can be read.
#[derive(Debug)]
pub(crate) enum ReadEnd {
    /// The peer closed, between frames or inside one.
    Closed,
    /// A frame began and did not end in time.
    Slow,
    /// Frames of other connections took up the memory until the deadline.
    Crowded,
    /// The bytes are not a valid frame.
    Bad(WireError),
}

/// The reading half of a connection.
#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    stream: R,
    decoder: Decoder,
    limits: FrameLimits,
    /// When the current frame began.
    began: Option<Instant>,
    account: Account,
    /// The memory of the current frame.
    hold: Option<Hold>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) const fn new(stream: R, limits: FrameLimits, account: Account) -> Self {
        Self {
            stream,
            decoder: Decoder::new(limits),
            limits,
            began: None,
            account,
            hold: None,
        }
    }

    /// The next frame and the memory reserved for it. Cancel-safe: bytes already received are kept.
    pub(crate) async fn next(&mut self) -> Result<(ClientFrame, Option<Hold>), ReadEnd> {
        loop {
            // Even a frame that arrived whole needs memory: it is held until its request is answered.
            self.reserve().await?;
            if let Some(body) = self.decoder.next_frame().map_err(ReadEnd::Bad)? {
                self.began = None;
                let memory = self.hold.take();
                let frame = decode_client(&body, self.limits).map_err(ReadEnd::Bad)?;
                return Ok((frame, memory));
            }
            if self.decoder.mid_frame() {
                let deadline = self.deadline();
                let filled = timeout_at(deadline, self.fill()).await;
                filled.map_err(|_| ReadEnd::Slow)??;
            } else {
                self.fill().await?;
            }
        }
    }

    /// Reserves memory for the frame that begins, before more of it is read. A frame over the limit needs none: the decoder
    /// refuses it.
    async fn reserve(&mut self) -> Result<(), ReadEnd> {
        let wanted = self.decoder.announced().filter(|_| self.hold.is_none());
        if let Some(bytes) = wanted.filter(|bytes| *bytes <= self.limits.max_frame_bytes) {
            let deadline = self.deadline();
            let taken = timeout_at(deadline, self.account.take(bytes)).await;
            self.hold = taken.map_err(|_| ReadEnd::Crowded)?;
        }
        Ok(())
    }

    fn deadline(&mut self) -> Instant {
        *self.began.get_or_insert_with(Instant::now) + FRAME
    }

    /// Waits for bytes and reads those that are available. The chunk is local to a poll, so an idle connection holds none.
    async fn fill(&mut self) -> Result<(), ReadEnd> {
        let (stream, decoder) = (&mut self.stream, &mut self.decoder);
        let read = poll_fn(|context| {
            let mut chunk = [const { MaybeUninit::uninit() }; CHUNK];
            let mut buffer = ReadBuf::uninit(&mut chunk);
            ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer))?;
            decoder.feed(buffer.filled());
            Poll::Ready(io::Result::Ok(buffer.filled().len()))
        });
        match read.await {
            Ok(0) | Err(_) => Err(ReadEnd::Closed),
            Ok(_) => Ok(()),
        }
    }
}
