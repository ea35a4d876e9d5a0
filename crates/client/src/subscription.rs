//! A subscription as a stream of pushed frames.

use crate::connection::Client;
use crate::error::ClientError;
use agentd_protocol::Seq;
use agentd_wire::Push;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Frames a subscription holds before its reader makes the daemon wait.
pub(crate) const QUEUE_FRAMES: usize = 1_024;

/// The reader task's end. The queue is bounded by [`Inbox::full`]: past that, the reader stops reading from the socket
/// unless a request waits for its answer (then it must go on, or both would wait for each other).
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    queue: mpsc::UnboundedSender<Push>,
    length: Arc<AtomicUsize>,
}

impl Inbox {
    pub(crate) fn new() -> (Self, Outbox) {
        let (queue, receiver) = mpsc::unbounded_channel();
        let length = Arc::new(AtomicUsize::new(0));
        (
            Self {
                queue,
                length: Arc::clone(&length),
            },
            Outbox {
                queue: receiver,
                length,
            },
        )
    }

    pub(crate) fn full(&self) -> bool {
        self.length.load(Ordering::Acquire) >= QUEUE_FRAMES && !self.queue.is_closed()
    }

    pub(crate) fn push(&self, push: Push) {
        self.length.fetch_add(1, Ordering::AcqRel);
        // A closed queue is a subscription that was dropped.
        let _ = self.queue.send(push);
    }
}

/// The subscription's end.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::UnboundedReceiver<Push>,
    length: Arc<AtomicUsize>,
}

/// News of a session or of the fleet. Dropping it tells the daemon to stop.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    outbox: Outbox,
    sub: u64,
    head: Seq,
}

impl Subscription {
    pub(crate) const fn new(client: Client, outbox: Outbox, sub: u64, head: Seq) -> Self {
        Self {
            client,
            outbox,
            sub,
            head,
        }
    }

    /// Its number on the connection.
    #[must_use]
    pub const fn sub(&self) -> u64 {
        self.sub
    }

    /// The log's head when it started; for the fleet the cursor.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// The next frame; `None` when the connection is lost (why: [`Client::lost`]) or after [`Push::Ended`]. Cancel-safe.
    pub async fn next(&mut self) -> Option<Push> {
        let push = self.outbox.queue.recv().await?;
        self.outbox.length.fetch_sub(1, Ordering::AcqRel);
        self.client.made_room();
        Some(push)
    }

    /// Ends it and waits for the daemon's word.
    ///
    /// # Errors
    /// [`ClientError`] when the daemon cannot be asked.
    pub async fn detach(self) -> Result<(), ClientError> {
        self.client.detach(self.sub).await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.outbox.queue.close();
        self.client.leave(self.sub);
    }
}
