//! A subscription as a stream of pushed frames.

use crate::connection::Client;
use crate::error::ClientError;
use agentd_protocol::Seq;
use agentd_wire::Push;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Frames that a subscription queues before it exerts backpressure on the daemon.
pub(crate) const QUEUE_FRAMES: usize = 1_024;

/// The reader task's end of the queue, which is bounded by [`Inbox::full`]: beyond that the reader stops reading the
/// socket, unless a request is pending (stopping would then deadlock, because its answer could not arrive).
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
        // The queue is closed if the subscription was dropped.
        let _ = self.queue.send(push);
    }
}

/// The subscription's end of the queue.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::UnboundedReceiver<Push>,
    length: Arc<AtomicUsize>,
}

/// Pushed frames of a session or of the fleet. Dropping it ends the subscription.
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

    /// The subscription's number on the connection.
    #[must_use]
    pub const fn sub(&self) -> u64 {
        self.sub
    }

    /// The log's head at the start of the subscription; for the fleet, the cursor.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// The next frame; `None` after a lost connection (see [`Client::lost`]) or after [`Push::Ended`]. Cancel-safe.
    pub async fn next(&mut self) -> Option<Push> {
        let push = self.outbox.queue.recv().await?;
        self.outbox.length.fetch_sub(1, Ordering::AcqRel);
        self.client.made_room();
        Some(push)
    }

    /// Ends the subscription and waits for the daemon's confirmation.
    ///
    /// # Errors
    /// [`ClientError`] if the request fails.
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
