//! What the feed understands: the fan-out to viewers, after the commit and off its path.

use crate::done::Done;
use agentd_protocol::{Delta, Seq, SessionId, Status};
use agentd_store::EncodedEvent;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The number of a viewer, unique in the node.
pub type ViewerId = u64;

/// A viewer of one session or of the fleet. Its queue is bounded; a full queue drops deltas and then makes it lag.
#[derive(Debug)]
pub struct Viewer {
    /// Its number.
    pub id: ViewerId,
    /// Its bounded queue.
    pub queue: mpsc::Sender<FeedFrame>,
    /// It wants deltas.
    pub deltas: bool,
    /// It may answer approvals.
    pub decides: bool,
}

/// What a viewer gets. What it holds is shared by all viewers, so a queue of frames takes little room.
#[derive(Debug, Clone)]
pub enum FeedFrame {
    /// A committed event.
    Event(Arc<FeedEvent>),
    /// A live fragment.
    Delta(Arc<Delta>),
    /// The viewer was too slow; it must read on from the log and attach anew.
    Lagged,
}

/// A committed event on its way to viewers.
#[derive(Debug, Clone)]
pub struct FeedEvent {
    /// Whose.
    pub session: SessionId,
    /// The fleet-wide cursor.
    pub cursor: u64,
    /// The event as stored.
    pub event: EncodedEvent,
}

/// Committed events of one append.
#[derive(Debug, Clone)]
pub struct Published {
    /// Whose.
    pub session: SessionId,
    /// The cursor of the last one.
    pub cursor: u64,
    /// The events.
    pub events: Vec<EncodedEvent>,
}

/// What an attach starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// The last committed seq that the feed has seen of this session; 0 when it has seen none.
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
    /// A live fragment of a session.
    Delta {
        /// Whose.
        session: SessionId,
        /// The fragment.
        delta: Delta,
    },
    /// The session went cold: forget its partial text and status.
    Cold {
        /// Which.
        session: SessionId,
    },
    /// An append may be durable that nobody announced: its answer was lost for good.
    Unsure {
        /// Whose.
        session: SessionId,
    },
    /// The log of a session was read again, up to here.
    Loaded {
        /// Which.
        session: SessionId,
        /// The end of its log.
        head: Seq,
    },
    /// Follow a session from now on.
    Attach {
        /// Which.
        session: SessionId,
        /// Who.
        viewer: Viewer,
        /// Where it starts.
        done: Done<Attached>,
    },
    /// Stop following.
    Detach {
        /// Which session.
        session: SessionId,
        /// Who.
        viewer: ViewerId,
    },
    /// Follow all sessions' events from now on (no deltas).
    Watch {
        /// Who.
        viewer: Viewer,
        /// The cursor of the last event seen.
        done: Done<u64>,
    },
    /// Stop following all sessions.
    Unwatch {
        /// Who.
        viewer: ViewerId,
    },
    /// How many viewers of some sessions may decide.
    Deciders {
        /// Which.
        sessions: Vec<SessionId>,
        /// The number.
        done: Done<u32>,
    },
    /// Whatever of the fleet-wide stream up to here did not arrive must be read from the log (private timer).
    Settle {
        /// The fleet-wide cursor.
        upto: u64,
    },
}
