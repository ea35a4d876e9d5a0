//! The webhook notifier: follows all sessions and notifies other programs of open questions.
//!
//! Like the audit writer, it reads events after their commit, so it delays no session, and it continues from the log
//! after a lag. A note in flight when the daemon stops is lost, so on each start it sends all open questions again: a
//! receiver gets each at least once, and recognizes repeats by their key. The inbox is authoritative.

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

/// Frames queued for the notifier; beyond that it reads the log instead.
const QUEUE: usize = 1_024;
/// Events per page of the log.
const PAGE: u32 = 512;
/// How long a page or a subscription may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before it subscribes to the feed again.
const PAUSE: Duration = Duration::from_secs(1);
/// The notifier's viewer id; the audit writer has the next higher one.
const VIEWER: u64 = u64::MAX - 1;

/// Sends notes to the configured webhooks.
#[derive(Debug)]
pub(crate) struct WebhookNotifier {
    webhooks: Webhooks,
    feed: Handle<FeedMsg>,
    store: Handle<StoreMsg>,
    cursor: Option<u64>,
}

impl WebhookNotifier {
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

    /// Sends all open questions. The log keeps questions that come up meanwhile.
    async fn remind(&self) {
        let told = remind(self.webhooks.clone(), self.store.clone());
        if AssertUnwindSafe(told).catch_unwind().await.is_err() {
            tracing::error!("the webhook notifier panicked while it told of open questions");
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
                        // Nothing would restart this task, and people would wait for notes in vain. The reminder below
                        // repeats the question whose note caused the panic.
                        tracing::error!("the webhook notifier panicked; it goes on");
                        sleep(PAUSE).await;
                        self.remind().await;
                    }
                }
                Err(error) => {
                    tracing::info!(%error, "the webhook notifier waits for the feed");
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
        // Advance first: an event that causes a panic here would do so forever.
        self.cursor = Some(cursor);
        let event = serde_json::from_slice::<Event>(stored).ok();
        // An event that fails here is skipped, like an unreadable one. The next start sends its question again.
        if fault::point(fault::WEBHOOK_NOTE).is_err() {
            return;
        }
        if let Some(note) = event.as_ref().and_then(Note::of) {
            self.webhooks.send(&note);
        }
    }
}
