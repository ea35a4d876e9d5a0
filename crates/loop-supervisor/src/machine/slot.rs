//! The supervisor's state for a session that is not cold.

use agentd_actor_kit::{LiveStatus, Routed, SessionMsg};
use agentd_protocol::Timestamp;
use ractor::{ActorId, ActorRef};
use std::collections::VecDeque;

/// A session that is not cold.
#[derive(Debug)]
pub(crate) enum Slot {
    /// Its log is being folded.
    Loading(Loading),
    /// Its loop is running.
    Hot(Hot),
    /// A person must revive it.
    Faulted {
        /// The reason.
        why: String,
        /// When it was faulted.
        since: Timestamp,
    },
}

/// A load in progress.
#[derive(Debug)]
pub(crate) struct Loading {
    /// The number of the load; the result of an outdated one is discarded.
    pub(crate) ticket: u64,
    /// Commands that wait for it.
    pub(crate) waiting: VecDeque<Routed>,
    /// The session wakes by itself, without a command: a refused load is retried.
    pub(crate) by_itself: bool,
    /// When the load began.
    pub(crate) since: Timestamp,
}

/// A session with a loop.
#[derive(Debug)]
pub(crate) struct Hot {
    /// The loop.
    pub(crate) actor: ActorRef<SessionMsg>,
    /// The number of commands sent to it.
    pub(crate) routed: u64,
    /// The last status that it reported.
    pub(crate) status: Option<LiveStatus>,
}

impl Slot {
    /// The hot session, if its loop is this incarnation.
    pub(crate) fn hot(&mut self, who: ActorId) -> Option<&mut Hot> {
        match self {
            Self::Hot(hot) if hot.actor.get_id() == who => Some(hot),
            Self::Hot(_) | Self::Loading(_) | Self::Faulted { .. } => None,
        }
    }
}
