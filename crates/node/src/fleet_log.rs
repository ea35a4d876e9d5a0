//! Brings what other nodes write to the viewers of this node: reads the log of the fleet, and announces it to the feed.
//!
//! This node's own commits reach the feed without it, and are mostly not read here. Invariant I2: the feed drops what it has
//! seen, and what comes out of order makes a viewer read the log; so announcing an event twice is harmless.

use agentd_actor_kit::{FeedMsg, GateMsg, Handle, Published};
use agentd_protocol::{SessionId, Timestamp};
use agentd_store::{Backend, EncodedEvent, StoreError, WatchedEvent};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Events per page.
const PAGE: u32 = 512;
/// How long to wait for news at most: a hint may be lost.
const EVERY: Duration = Duration::from_millis(250);
/// The pause after a page when no viewer of this node waits for the next one. Fewer pages mean less work for the node and for
/// the database.
const UNHURRIED: Duration = Duration::from_millis(20);
/// How long the feed may take for a page.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reader. It keeps its position when it is restarted.
#[derive(Debug)]
pub(crate) struct FleetLog {
    backend: Arc<dyn Backend>,
    feed: Handle<FeedMsg>,
    gate: Handle<GateMsg>,
    cursor: u64,
}

impl FleetLog {
    /// Reads from the end of the log as it was when the store was opened.
    pub(crate) fn new(backend: Arc<dyn Backend>, feed: Handle<FeedMsg>, gate: Handle<GateMsg>) -> Self {
        let cursor = *backend.committed().borrow();
        Self {
            backend,
            feed,
            gate,
            cursor,
        }
    }

    /// Runs until dropped.
    pub(crate) async fn run(&mut self) {
        let mut hints = self.backend.committed();
        let mut failing = false;
        loop {
            match self.read().await {
                Ok(true) => continue,
                Ok(false) => failing = false,
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(%error, "cannot read what other nodes write; trying again");
                }
                Err(_) => {}
            }
            // Whether a hint came or not, the log says what is new.
            let _ = timeout(EVERY, hints.changed()).await;
        }
    }

    /// Announces a page, and pauses unless a viewer waits for the next one. Returns whether there may be more.
    async fn read(&mut self) -> Result<bool, StoreError> {
        let page = self.backend.watch_others(self.cursor, PAGE).await?;
        let more = !page.events.is_empty();
        let awaited = !more || self.announce(page.events).await;
        self.cursor = page.cursor;
        if !awaited {
            sleep(UNHURRIED).await;
        }
        Ok(more)
    }

    /// Returns whether a viewer waits for more.
    async fn announce(&self, events: Vec<WatchedEvent>) -> bool {
        if events.iter().any(|event| event.session == SessionId::NIL) {
            self.gate.cast(GateMsg::Reread);
        }
        let commits = events.into_iter().map(published).collect();
        let others = |done| FeedMsg::Others { commits, done };
        // Without an answer the feed restarts, and its viewers come back.
        self.feed.call(PATIENCE, others).await.unwrap_or(true)
    }
}

fn published(event: WatchedEvent) -> Published {
    let stored = EncodedEvent {
        seq: event.seq,
        // The feed passes the line on, which has the time.
        at: Timestamp::default(),
        kind: event.kind.into(),
        body: event.body,
    };
    Published {
        session: event.session,
        events: vec![stored],
        cursor: event.cursor,
    }
}
