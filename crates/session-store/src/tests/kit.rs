//! Shared test helpers: the two actors with a counting store in memory.

use crate::{Feed, FeedArgs, FeedLimits, OnFatal, SessionStore, StoreArgs, StoreLimits};
use agentd_actor_core::{Attached, Done, FeedFrame, FeedMsg, Handle, Published, StoreMsg, Viewer};
use agentd_protocol::{
    CallId, Delta, EVENT_VERSION, Event, Fragment, Principal, Seq, SessionId, SessionPaused, Stamp, Timestamp,
};
use agentd_store::testing::CountingLog;
use agentd_store::{Append, EncodedEvent, MemoryStore, Outcome, SessionLog as _};
use ractor::{Actor, ActorRef};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

pub(crate) const SOON: Duration = Duration::from_secs(5);

pub(crate) struct Kit {
    pub(crate) log: Arc<CountingLog>,
    pub(crate) store: Handle<StoreMsg>,
    pub(crate) feed: Handle<FeedMsg>,
    pub(crate) fatal: mpsc::UnboundedReceiver<String>,
    stamp: Mutex<Stamp>,
}

impl Kit {
    pub(crate) async fn new() -> Self {
        Self::with(StoreLimits::default(), FeedLimits::default()).await
    }

    pub(crate) async fn with(limits: StoreLimits, feed_limits: FeedLimits) -> Self {
        let log = Arc::new(CountingLog::new(Arc::new(MemoryStore::default())));
        let feed_args = FeedArgs {
            committed: log.committed(),
            limits: feed_limits,
        };
        let (feed, _) = Actor::spawn(None, Feed, feed_args).await.unwrap();
        let feed = Handle::fixed("feed", feed);
        let (tell, fatal) = mpsc::unbounded_channel();
        let on_fatal = OnFatal::new(move |why| {
            let _ = tell.send(why);
        });
        let args = StoreArgs {
            backend: Arc::clone(&log) as _,
            feed: feed.clone(),
            limits,
            on_fatal,
        };
        let (store, _) = Actor::spawn(None, SessionStore, args).await.unwrap();
        let store = Handle::fixed("session store", store);
        Self {
            log,
            store,
            feed,
            fatal,
            stamp: Mutex::new(Stamp::new(Timestamp(1_000), 7)),
        }
    }

    pub(crate) fn actor(&self) -> ActorRef<StoreMsg> {
        self.store.actor().unwrap()
    }

    pub(crate) fn session(&self) -> SessionId {
        self.stamp.lock().unwrap().session()
    }

    pub(crate) fn append(&self, session: SessionId, head: Seq, events: u64) -> Append {
        let mut append = Append::new(session, 1, head, self.stamp.lock().unwrap().append());
        append.events = (head + 1..=head + events)
            .map(|seq| event(session, seq))
            .collect();
        append
    }

    pub(crate) async fn store(&self, append: Append) -> Outcome {
        self.store
            .call(SOON, |done| StoreMsg::Append { append, done })
            .await
            .unwrap()
    }

    pub(crate) async fn stored(&self, session: SessionId, head: Seq, events: u64) {
        let outcome = self.store(self.append(session, head, events)).await;
        assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
    }

    /// Waits until the feed has handled all earlier messages.
    pub(crate) async fn deciders(&self, session: SessionId) -> u32 {
        self.feed
            .call(SOON, |done| FeedMsg::Deciders {
                sessions: vec![session],
                done,
            })
            .await
            .unwrap()
    }

    pub(crate) async fn attach(&self, session: SessionId, viewer: Viewer) -> Attached {
        self.feed
            .call(SOON, |done| FeedMsg::Attach {
                session,
                viewer,
                done,
            })
            .await
            .unwrap()
    }

    pub(crate) async fn watch(&self, viewer: Viewer) -> u64 {
        self.watch_as(viewer, false).await
    }

    pub(crate) async fn watch_as(&self, viewer: Viewer, patient: bool) -> u64 {
        self.feed
            .call(SOON, |done: Done<u64>| FeedMsg::Watch {
                viewer,
                patient,
                done,
            })
            .await
            .unwrap()
    }

    /// Announces commits of other nodes. Returns whether a viewer waits for more.
    pub(crate) async fn others(&self, commits: Vec<Published>) -> bool {
        self.feed
            .call(SOON, |done| FeedMsg::Others { commits, done })
            .await
            .unwrap()
    }
}

/// A viewer that receives deltas and may decide, and its queue.
pub(crate) fn viewer(id: u64, length: usize) -> (Viewer, mpsc::Receiver<FeedFrame>) {
    let (queue, frames) = mpsc::channel(length);
    (
        Viewer {
            id,
            queue,
            deltas: true,
            decides: true,
        },
        frames,
    )
}

/// The frames that a viewer received, in short form: `e3` an event with its seq, `c7` its cursor, `dxyz` a text, `lagged`.
pub(crate) fn word(frame: &FeedFrame) -> String {
    match frame {
        FeedFrame::Event(told) => format!("e{} c{}", told.event.seq, told.cursor),
        FeedFrame::Delta(delta) => match delta.as_ref() {
            Delta::Text(fragment) => format!("d{}", fragment.text),
            Delta::Status(status) => status.state.to_string(),
            other => format!("{other:?}"),
        },
        FeedFrame::Lagged => "lagged".to_owned(),
    }
}

/// The content of a queue, without the numbers of viewers.
pub(crate) fn waiting(frames: &mut mpsc::Receiver<FeedFrame>) -> Vec<String> {
    let mut words = Vec::new();
    while let Ok(frame) = frames.try_recv() {
        let counts =
            matches!(&frame, FeedFrame::Delta(delta) if matches!(delta.as_ref(), Delta::Viewers { .. }));
        if !counts {
            words.push(word(&frame));
        }
    }
    words
}

pub(crate) fn event(session: SessionId, seq: Seq) -> EncodedEvent {
    let body = SessionPaused {
        reason: format!("nr. {seq}"),
    }
    .into();
    let by = Principal::agentd();
    let event = Event {
        v: EVENT_VERSION,
        session,
        seq,
        at: Timestamp(1_000),
        by,
        turn: None,
        body,
    };
    EncodedEvent::encode(&event).unwrap()
}

pub(crate) fn text(attempt: u32, offset: u64, text: &str) -> Delta {
    Delta::Text(Fragment {
        call: CallId::NIL,
        attempt,
        block: 0,
        offset,
        text: text.to_owned(),
    })
}
