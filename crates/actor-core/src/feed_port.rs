//! The messages of the feed: the fan-out to viewers, after the commit and off its path.

use crate::done::Done;
use agentd_protocol::{Delta, Seq, SessionId, Status};
use agentd_store::EncodedEvent;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The id of a viewer, unique in the node.
pub type ViewerId = u64;

/// A viewer of one session or of the fleet. Its queue is bounded; when it is full, the viewer loses deltas, then lags.
#[derive(Debug)]
pub struct Viewer {
    /// Its id.
    pub id: ViewerId,
    /// Its bounded queue.
    pub queue: mpsc::Sender<FeedFrame>,
    /// Whether it wants deltas.
    pub deltas: bool,
    /// Whether it may answer approvals.
    pub decides: bool,
}

/// A frame for a viewer. All viewers share the contents, so a queue of frames takes little memory.
#[derive(Debug, Clone)]
pub enum FeedFrame {
    /// A committed event.
    Event(Arc<FeedEvent>),
    /// A live fragment.
    Delta(Arc<Delta>),
    /// The viewer was too slow; it must continue from the log and attach again.
    Lagged,
}

/// A committed event on its way to viewers.
#[derive(Debug, Clone)]
pub struct FeedEvent {
    /// The session.
    pub session: SessionId,
    /// The fleet-wide cursor.
    pub cursor: u64,
    /// The event as stored.
    pub event: EncodedEvent,
}

/// Committed events of one append.
#[derive(Debug, Clone)]
pub struct Published {
    /// The session.
    pub session: SessionId,
    /// The cursor of the last event.
    pub cursor: u64,
    /// The events.
    pub events: Vec<EncodedEvent>,
}

/// The starting point of an attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// The last committed seq that the feed has seen of this session; 0 if it has seen none.
    pub seq: Seq,
    /// The last live status.
    pub status: Option<Status>,
    /// The text of the running model call so far.
    pub partial: Option<String>,
}

/// Messages of the feed.
#[derive(Debug)]
pub enum FeedMsg {
    /// Events were committed.
    Committed(Vec<Published>),
    /// Other nodes committed events.
    Others {
        /// The events.
        commits: Vec<Published>,
        /// Whether a viewer of this node waits for such events.
        done: Done<bool>,
    },
    /// A live fragment of a session.
    Delta {
        /// The session.
        session: SessionId,
        /// The fragment.
        delta: Delta,
    },
    /// The session went cold: forget its partial text and status.
    Cold {
        /// The session.
        session: SessionId,
    },
    /// An append may be durable but unannounced: its answer was lost for good.
    Unsure {
        /// The session.
        session: SessionId,
    },
    /// The log of a session was read again, up to `head`.
    Loaded {
        /// The session.
        session: SessionId,
        /// The end of its log.
        head: Seq,
    },
    /// Follow a session from now on.
    Attach {
        /// The session.
        session: SessionId,
        /// The viewer.
        viewer: Viewer,
        /// The starting point.
        done: Done<Attached>,
    },
    /// Stop following.
    Detach {
        /// The session.
        session: SessionId,
        /// The viewer.
        viewer: ViewerId,
    },
    /// Follow all sessions' events from now on (no deltas).
    Watch {
        /// The viewer.
        viewer: Viewer,
        /// Whether events of other nodes may reach it a little later.
        patient: bool,
        /// The cursor of the last event seen.
        done: Done<u64>,
    },
    /// Stop following all sessions.
    Unwatch {
        /// The viewer.
        viewer: ViewerId,
    },
    /// Ask how many viewers of some sessions may decide.
    Deciders {
        /// The sessions.
        sessions: Vec<SessionId>,
        /// The number.
        done: Done<u32>,
    },
    /// Events of the fleet-wide stream up to `upto` that have not arrived must be read from the log (private timer).
    Settle {
        /// The fleet-wide cursor.
        upto: u64,
    },
}
