//! The herald: a viewer of the whole fleet that has other programs told when a person is asked.
//!
//! Like the scribe it hangs off the commit, so it slows nobody, and reads on from the log where it lagged. A note that was
//! on its way when the daemon went down is lost, so at its start it tells once more of every question that is still open:
//! a receiver hears of each at least once, and knows it again by its key. The inbox is the truth.

use crate::reminder::remind;
use agentd_actor_kit::{FeedFrame, FeedMsg, Handle, Read, StoreMsg, Viewer};
use agentd_fault_points as fault;
use agentd_protocol::Event;
use agentd_webhook::{Note, Webhooks};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Frames that wait for the herald; beyond that it reads the log instead.
const QUEUE: usize = 1_024;
/// Events of one page that is read from the log.
const PAGE: u32 = 512;
/// How long a page or a subscription may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Before the feed is asked again.
const PAUSE: Duration = Duration::from_secs(1);
/// The herald's number among viewers; the scribe has the one above.
const VIEWER: u64 = u64::MAX - 1;

/// Has others told.
#[derive(Debug)]
pub(crate) struct Herald {
    webhooks: Webhooks,
    feed: Handle<FeedMsg>,
    store: Handle<StoreMsg>,
    cursor: Option<u64>,
}

impl Herald {
    pub(crate) const fn new(
        webhooks: Webhooks,
        feed: Handle<FeedMsg>,
        store: Handle<StoreMsg>,
        after: u64,
    ) -> Self {
        Self {
            webhooks,
            feed,
            store,
            cursor: Some(after),
        }
    }

    /// Runs until dropped.
    pub(crate) async fn run(mut self) {
        self.remind().await;
        self.follow_all().await;
    }

    /// Tells of all that is open. The log keeps what is asked meanwhile.
    async fn remind(&self) {
        let told = remind(self.webhooks.clone(), self.store.clone());
        if AssertUnwindSafe(told).catch_unwind().await.is_err() {
            tracing::error!("the herald panicked while it told of open questions");
        }
    }

    async fn follow_all(&mut self) {
        loop {
            let (queue, mut frames) = mpsc::channel(QUEUE);
            let viewer = Viewer {
                id: VIEWER,
                queue,
                deltas: false,
                decides: false,
            };
            match self
                .feed
                .call(PATIENCE, |done| FeedMsg::Watch { viewer, done })
                .await
            {
                Ok(cursor) => {
                    self.cursor.get_or_insert(cursor);
                    let round = AssertUnwindSafe(self.round(&mut frames)).catch_unwind().await;
                    if round.is_err() {
                        // Nobody would start it again, and people would wait for words that never come. What it was at is
                        // told of with everything that is open.
                        tracing::error!("the herald panicked; it goes on");
                        sleep(PAUSE).await;
                        self.remind().await;
                    }
                }
                Err(error) => {
                    tracing::info!(%error, "the herald waits for the feed");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn round(&mut self, frames: &mut mpsc::Receiver<FeedFrame>) {
        self.catch_up().await;
        self.follow(frames).await;
    }

    async fn follow(&mut self, frames: &mut mpsc::Receiver<FeedFrame>) {
        while let Some(frame) = frames.recv().await {
            match frame {
                FeedFrame::Event(told) => {
                    if self.cursor.is_none_or(|seen| told.cursor > seen) {
                        self.tell(told.cursor, &told.event.body);
                    }
                }
                FeedFrame::Delta(_) => {}
                FeedFrame::Lagged => return,
            }
        }
    }

    async fn catch_up(&mut self) {
        loop {
            let after = self.cursor;
            let read = self
                .store
                .call(PATIENCE, |done| {
                    StoreMsg::Read(Read::Watch {
                        after,
                        limit: PAGE,
                        done,
                    })
                })
                .await;
            let Ok(Ok(page)) = read else { return };
            for event in &page.events {
                self.tell(event.cursor, &event.body);
            }
            self.cursor = Some(page.cursor);
            if page.events.len() < PAGE as usize {
                return;
            }
        }
    }

    fn tell(&mut self, cursor: u64, stored: &[u8]) {
        // Before it is looked at: an event that makes this panic would do so for ever.
        self.cursor = Some(cursor);
        let event = serde_json::from_slice::<Event>(stored).ok();
        // An event that fails here is left out like one that cannot be read; a question is told of again at the next start.
        if fault::point(fault::WEBHOOK_NOTE).is_err() {
            return;
        }
        if let Some(note) = event.as_ref().and_then(Note::of) {
            self.webhooks.send(&note);
        }
    }
}
