//! Reads frames from a socket, each within its deadline and its limits.

use crate::budget::{Account, Hold};
use agentd_wire::{ClientFrame, Decoder, FrameLimits, WireError, decode_client};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::net::unix::OwnedReadHalf;
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
pub(crate) struct FrameReader {
    socket: OwnedReadHalf,
    decoder: Decoder,
    limits: FrameLimits,
    /// When the current frame began.
    began: Option<Instant>,
    account: Account,
    /// The memory of the current frame.
    hold: Option<Hold>,
}

impl FrameReader {
    pub(crate) const fn new(socket: OwnedReadHalf, limits: FrameLimits, account: Account) -> Self {
        Self {
            socket,
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
                let ready = timeout_at(self.deadline(), self.socket.readable()).await;
                ready.map_err(|_| ReadEnd::Slow)?.map_err(|_| ReadEnd::Closed)?;
            } else {
                self.socket.readable().await.map_err(|_| ReadEnd::Closed)?;
            }
            self.fill()?;
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

    /// Reads the available bytes. The chunk is local, so an idle connection holds none.
    fn fill(&mut self) -> Result<(), ReadEnd> {
        let mut chunk = [0; CHUNK];
        match self.socket.try_read(&mut chunk) {
            Ok(0) => Err(ReadEnd::Closed),
            Ok(length) => {
                self.decoder.feed(chunk.get(..length).unwrap_or_default());
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(_) => Err(ReadEnd::Closed),
        }
    }
}
