//! A viewer's subscription to the feed of one session, aligned with the part of the log already read.

use crate::api::{READ, fault_of};
use agentd_actor_kit::{FeedFrame, FeedMsg, Handle, Viewer};
use agentd_protocol::{Fault, Seq, SessionId, Status};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// How long the feed may take to deliver events that the log already has.
const ALIGN: Duration = Duration::from_secs(1);
/// The maximum number of frames per batch.
pub(crate) const BATCH: usize = 128;

/// A viewer's request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) session: SessionId,
    pub(crate) viewer: u64,
    pub(crate) deltas: bool,
    pub(crate) decides: bool,
    /// The number of frames that the feed queues for it.
    pub(crate) queue: usize,
}

/// A subscription to the feed; it ends when dropped.
#[derive(Debug)]
pub(crate) struct FeedSubscription {
    feed: Handle<FeedMsg>,
    wish: Wish,
    frames: mpsc::Receiver<FeedFrame>,
    waiting: VecDeque<FeedFrame>,
    /// Every event up to here was published before this subscription began, or was delivered to it.
    told: Seq,
    pub(crate) status: Option<Status>,
    pub(crate) partial: Option<String>,
    given_up: bool,
}

impl FeedSubscription {
    /// Subscribes to the feed. `durable` is a seq that was already in the log.
    pub(crate) async fn take(feed: &Handle<FeedMsg>, wish: Wish, durable: Seq) -> Result<Self, Fault> {
        let (queue, frames) = mpsc::channel(wish.queue.max(1));
        let viewer = Viewer {
            id: wish.viewer,
            queue,
            deltas: wish.deltas,
            decides: wish.decides,
        };
        let attach = |done| FeedMsg::Attach {
            session: wish.session,
            viewer,
            done,
        };
        let attached = feed.call(READ, attach).await.map_err(fault_of)?;
        Ok(Self {
            feed: feed.clone(),
            wish,
            frames,
            waiting: VecDeque::new(),
            told: attached.seq.max(durable),
            status: attached.status,
            partial: attached.partial,
            given_up: false,
        })
    }

    /// Waits until the feed has delivered the log's events up to `seen`, and drops fragments that this makes stale. `false`:
    /// subscription is lost, because the log was read too slowly or the feed restarted.
    pub(crate) async fn align(&mut self, seen: Seq) -> bool {
        let deadline = Instant::now() + ALIGN;
        while self.told < seen {
            // Without an answer in time a stale fragment may be shown; events are correct in any case.
            let Ok(frame) = timeout_at(deadline, self.frames.recv()).await else {
                break;
            };
            match frame {
                // An event beyond the part of the log that was read must not be lost: it is the next to be pushed (I2).
                Some(FeedFrame::Event(ref told)) if told.event.seq > seen => {
                    self.waiting.extend(frame);
                    break;
                }
                Some(FeedFrame::Event(told)) => {
                    let event = &told.event;
                    self.told = event.seq;
                    self.status = None;
                    if event.kind.starts_with("model.") || event.kind == "turn.finished" {
                        self.partial = None;
                        self.waiting.clear();
                    }
                }
                Some(frame @ FeedFrame::Delta(_)) => {
                    if self.waiting.len() >= self.wish.queue {
                        self.waiting.pop_front();
                    }
                    self.waiting.push_back(frame);
                }
                Some(FeedFrame::Lagged) | None => return false,
            }
        }
        true
    }

    /// The next available frames. An empty result or `Lagged` means that this subscription is no longer usable.
    pub(crate) async fn next(&mut self) -> Vec<FeedFrame> {
        let mut batch = Vec::from(std::mem::take(&mut self.waiting));
        if batch.is_empty() {
            self.frames.recv_many(&mut batch, BATCH).await;
        }
        batch
    }
}

impl FeedSubscription {
    /// Unsubscribes. Must precede another subscription with the same number, which it would otherwise remove.
    pub(crate) fn give_up(&mut self) {
        if !std::mem::replace(&mut self.given_up, true) {
            let (session, viewer) = (self.wish.session, self.wish.viewer);
            self.feed.cast(FeedMsg::Detach { session, viewer });
        }
    }
}

impl Drop for FeedSubscription {
    fn drop(&mut self) {
        self.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_actor_kit::{FeedEvent, Pointer};
    use agentd_protocol::Timestamp;
    use agentd_store::EncodedEvent;
    use bytes::Bytes;
    use std::sync::Arc;

    /// A subscription that has received everything up to 3, with the events of `seqs` in its queue.
    fn subscription(seqs: &[Seq]) -> (FeedSubscription, mpsc::Sender<FeedFrame>) {
        let (queue, frames) = mpsc::channel(8);
        for seq in seqs {
            let event = EncodedEvent {
                seq: *seq,
                at: Timestamp(0),
                kind: "input.accepted".into(),
                body: Bytes::new(),
            };
            queue
                .try_send(FeedFrame::Event(Arc::new(FeedEvent {
                    session: SessionId::NIL,
                    cursor: *seq,
                    event,
                })))
                .unwrap();
        }
        let wish = Wish {
            session: SessionId::NIL,
            viewer: 1,
            deltas: false,
            decides: false,
            queue: 8,
        };
        let feed = Pointer::new("the feed").handle();
        let waiting = VecDeque::new();
        (
            FeedSubscription {
                feed,
                wish,
                frames,
                waiting,
                told: 3,
                status: None,
                partial: None,
                given_up: false,
            },
            queue,
        )
    }

    async fn next_seq(subscription: &mut FeedSubscription) -> Option<Seq> {
        match subscription.next().await.as_slice() {
            [FeedFrame::Event(told)] => Some(told.event.seq),
            _ => None,
        }
    }

    #[tokio::test]
    async fn i2_an_event_newer_than_the_read_log_is_kept_for_the_viewer() {
        // 4 and 5 were published before the subscription began; 6 arrives while it waits for them.
        let (mut subscription, queue) = subscription(&[6]);
        assert!(subscription.align(5).await);
        drop(queue);
        assert_eq!(next_seq(&mut subscription).await, Some(6));
        assert_eq!(next_seq(&mut subscription).await, None);
    }

    #[tokio::test]
    async fn i2_events_already_read_from_the_log_are_not_pushed_again() {
        let (mut subscription, queue) = subscription(&[4, 5]);
        assert!(subscription.align(5).await);
        drop(queue);
        assert_eq!(next_seq(&mut subscription).await, None);
    }
}
