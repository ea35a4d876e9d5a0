//! Follows the log of all sessions for a [`LogReader`]: live from the feed, and from the store after a lag or a restart.
//!
//! It reads events after their commit, so it delays no session.

use agentd_actor_kit::{FeedFrame, FeedMsg, Handle, Read, StoreMsg, Viewer};
use async_trait::async_trait;
use futures_util::FutureExt as _;
use std::io;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Events per page of the log.
const PAGE: u32 = 512;
/// How long a page or a subscription may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// What happens to an event whose handling panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnPanic {
    /// The reader misses it.
    Skip,
    /// The reader gets it again.
    Retry,
}

/// Reads the log of all sessions.
#[async_trait]
pub(crate) trait LogReader: Send {
    /// Its name in the daemon's log.
    const NAME: &'static str;
    /// Its viewer id at the feed.
    const VIEWER: u64;
    /// Frames queued for it; beyond that it reads the store instead.
    const QUEUE: usize;
    /// What happens to an event whose handling panics.
    const ON_PANIC: OnPanic;

    /// Takes a stored event. After an error it gets the event again.
    fn take(&mut self, cursor: u64, stored: &[u8]) -> io::Result<()>;

    /// Runs at the start, and after a panic.
    async fn begin(&mut self) {}

    /// Takes what comes from elsewhere than the log. Must be cancel-safe.
    async fn take_other(&mut self) -> io::Result<()> {
        std::future::pending().await
    }

    /// Runs when the reader has caught up with the store.
    fn caught_up(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Runs after each subscription to the feed.
    fn flush(&mut self) {}
}

/// Drives a reader. It keeps its position when it is restarted.
#[derive(Debug)]
pub(crate) struct LogFollower<R> {
    reader: R,
    feed: Handle<FeedMsg>,
    store: Handle<StoreMsg>,
    cursor: Option<u64>,
}

impl<R: LogReader> LogFollower<R> {
    /// `after`: the cursor of the last event that the reader does not need.
    pub(crate) const fn new(
        reader: R,
        feed: Handle<FeedMsg>,
        store: Handle<StoreMsg>,
        after: Option<u64>,
    ) -> Self {
        Self {
            reader,
            feed,
            store,
            cursor: after,
        }
    }

    /// Runs until dropped. A panic of the reader costs a pause, because restarts by the root have a budget.
    pub(crate) async fn run(&mut self) {
        self.begin().await;
        loop {
            let (queue, mut frames) = mpsc::channel(R::QUEUE);
            let viewer = Viewer {
                id: R::VIEWER,
                queue,
                deltas: false,
                decides: false,
            };
            let watch = |done| FeedMsg::Watch {
                viewer,
                patient: true,
                done,
            };
            match self.feed.call(PATIENCE, watch).await {
                Ok(cursor) => {
                    self.cursor.get_or_insert(cursor);
                    let round = AssertUnwindSafe(self.round(&mut frames)).catch_unwind().await;
                    match round {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => {
                            tracing::warn!(reader = R::NAME, %error, "could not process an event; retrying");
                            sleep(PAUSE).await;
                        }
                        Err(_) => {
                            tracing::error!(reader = R::NAME, "panicked; continuing");
                            sleep(PAUSE).await;
                            self.begin().await;
                        }
                    }
                }
                Err(error) => {
                    // At startup and shutdown there is no feed for a moment; restarts of the feed are logged elsewhere.
                    tracing::info!(reader = R::NAME, %error, "waiting for the feed");
                    sleep(PAUSE).await;
                }
            }
            self.reader.flush();
        }
    }

    async fn begin(&mut self) {
        if AssertUnwindSafe(self.reader.begin())
            .catch_unwind()
            .await
            .is_err()
        {
            tracing::error!(reader = R::NAME, "panicked at its start");
        }
    }

    async fn round(&mut self, frames: &mut mpsc::Receiver<FeedFrame>) -> io::Result<()> {
        self.catch_up().await?;
        self.reader.caught_up()?;
        loop {
            let frame = tokio::select! {
                frame = frames.recv() => frame,
                taken = self.reader.take_other() => {
                    taken?;
                    continue;
                }
            };
            match frame {
                Some(FeedFrame::Event(told)) => {
                    if self.cursor.is_none_or(|seen| told.cursor > seen) {
                        self.take(told.cursor, &told.event.body)?;
                    }
                }
                Some(FeedFrame::Delta(_)) => {}
                Some(FeedFrame::Lagged) | None => return Ok(()),
            }
        }
    }

    async fn catch_up(&mut self) -> io::Result<()> {
        loop {
            let after = self.cursor;
            let page = |done| {
                StoreMsg::Read(Read::Watch {
                    after,
                    limit: PAGE,
                    done,
                })
            };
            let Ok(Ok(page)) = self.store.call(PATIENCE, page).await else {
                return Ok(());
            };
            for event in &page.events {
                self.take(event.cursor, &event.body)?;
            }
            self.cursor = Some(page.cursor);
            if page.events.len() < PAGE as usize {
                return Ok(());
            }
        }
    }

    fn take(&mut self, cursor: u64, stored: &[u8]) -> io::Result<()> {
        let before = self.cursor;
        if R::ON_PANIC == OnPanic::Skip {
            self.cursor = Some(cursor);
        }
        let taken = self.reader.take(cursor, stored);
        self.cursor = if taken.is_ok() { Some(cursor) } else { before };
        taken
    }
}
