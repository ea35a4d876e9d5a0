//! The supervisor's state for a session that is not cold.

use agentd_actor_kit::{LiveStatus, LoopId, Routed};
use agentd_protocol::Timestamp;
use std::collections::VecDeque;

/// A session that is not cold.
#[derive(Debug)]
pub(super) enum Slot {
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
pub(super) struct Loading {
    /// The number of the load; the result of an outdated one is discarded.
    pub(super) ticket: u64,
    /// Commands that wait for it.
    pub(super) waiting: VecDeque<Routed>,
    /// The session wakes by itself, without a command: a refused load is retried.
    pub(super) by_itself: bool,
    /// When the load began.
    pub(super) since: Timestamp,
}

/// A session with a loop.
#[derive(Debug)]
pub(super) struct Hot {
    /// The loop.
    pub(super) who: LoopId,
    /// The number of commands sent to it.
    pub(super) routed: u64,
    /// The last status that it reported.
    pub(super) status: Option<LiveStatus>,
}

impl Slot {
    /// The hot session, if its loop is this incarnation.
    pub(super) fn hot(&mut self, who: LoopId) -> Option<&mut Hot> {
        match self {
            Self::Hot(hot) if hot.who == who => Some(hot),
            Self::Hot(_) | Self::Loading(_) | Self::Faulted { .. } => None,
        }
    }
}
