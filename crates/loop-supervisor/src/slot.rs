//! What is known of a session that is not cold.

use agentd_actor_kit::{LiveStatus, Routed, SessionMsg};
use agentd_protocol::Timestamp;
use ractor::{ActorId, ActorRef};
use std::collections::VecDeque;

/// A session that is not cold.
#[derive(Debug)]
pub(crate) enum Slot {
    /// Its log is being folded.
    Loading(Loading),
    /// It has a loop.
    Hot(Hot),
    /// It needs a person.
    Faulted {
        /// Why.
        why: String,
        /// Since when.
        since: Timestamp,
    },
}

/// A load on its way.
#[derive(Debug)]
pub(crate) struct Loading {
    /// Which load; the answer of an outdated one is undone.
    pub(crate) ticket: u64,
    /// Commands that wait for it.
    pub(crate) waiting: VecDeque<Routed>,
    /// Nobody asked for it: a refused one is tried again.
    pub(crate) by_itself: bool,
    /// Since when.
    pub(crate) since: Timestamp,
}

/// A session with a loop.
#[derive(Debug)]
pub(crate) struct Hot {
    /// The loop.
    pub(crate) actor: ActorRef<SessionMsg>,
    /// Commands sent to it.
    pub(crate) routed: u64,
    /// What it last said of itself.
    pub(crate) status: Option<LiveStatus>,
}

impl Slot {
    /// The loop, if it is this incarnation.
    pub(crate) fn hot(&mut self, who: ActorId) -> Option<&mut Hot> {
        match self {
            Self::Hot(hot) if hot.actor.get_id() == who => Some(hot),
            Self::Hot(_) | Self::Loading(_) | Self::Faulted { .. } => None,
        }
    }
}
