//! The supervisor's state: sessions that are not cold, pending wake-ups, crashes.

use crate::args::{Bounds, SupervisorArgs};
use crate::crashes::Crashes;
use crate::drain::Draining;
use crate::slot::Slot;
use crate::wakes::Wakes;
use agentd_actor_kit::{Alarm, Done, FeedMsg, LiveStatus, Routed, SupervisorMsg, SupervisorStats, ToolMsg};
use agentd_protocol::{RunState, SessionId, Status, Timestamp};
use agentd_session_loop::Services;
use ractor::{ActorId, ActorRef};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The supervisor's state.
#[derive(Debug)]
pub struct State {
    pub(crate) me: ActorRef<SupervisorMsg>,
    pub(crate) services: Arc<Services>,
    pub(crate) bounds: Bounds,
    pub(crate) slots: BTreeMap<SessionId, Slot>,
    /// Loops that are running, or whose exit has not been reported yet.
    pub(crate) loops: BTreeMap<ActorId, SessionId>,
    /// The number of sessions in `slots` that are hot or loading.
    pub(crate) awake: usize,
    /// Commands for cold sessions that wait for room.
    pub(crate) queue: VecDeque<Routed>,
    pub(crate) swept_at: Timestamp,
    pub(crate) wakes: Wakes,
    pub(crate) tick: Option<(Timestamp, Alarm)>,
    pub(crate) ticked_at: Timestamp,
    pub(crate) crashes: Crashes,
    pub(crate) evictions: BTreeMap<SessionId, Vec<Done<()>>>,
    pub(crate) tickets: u64,
    pub(crate) draining: Option<Draining>,
}

impl State {
    pub(crate) fn new(me: ActorRef<SupervisorMsg>, args: SupervisorArgs) -> Self {
        Self {
            me,
            services: args.services,
            bounds: args.bounds,
            slots: BTreeMap::new(),
            loops: BTreeMap::new(),
            awake: 0,
            queue: VecDeque::new(),
            swept_at: Timestamp::default(),
            wakes: Wakes::default(),
            tick: None,
            ticked_at: Timestamp::default(),
            crashes: Crashes::default(),
            evictions: BTreeMap::new(),
            tickets: 0,
            draining: None,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.services.clock.now()
    }

    /// Assigns a session its slot.
    pub(crate) fn occupy(&mut self, session: SessionId, slot: Slot) {
        self.vacate(session);
        if !matches!(slot, Slot::Faulted { .. }) {
            self.awake = self.awake.saturating_add(1);
        }
        self.slots.insert(session, slot);
    }

    /// Empties a slot.
    pub(crate) fn vacate(&mut self, session: SessionId) -> Option<Slot> {
        let slot = self.slots.remove(&session)?;
        if !matches!(slot, Slot::Faulted { .. }) {
            self.awake = self.awake.saturating_sub(1);
        }
        Some(slot)
    }

    /// A loop is gone: lets others release what they keep for it (I5), and answers those who asked for its eviction.
    pub(crate) fn tell_cold(&mut self, session: SessionId) {
        self.services.feed.cast(FeedMsg::Cold { session });
        self.services.tools.cast(ToolMsg::SessionEnded { session });
        let askers = self.evictions.remove(&session).unwrap_or_default();
        askers.into_iter().for_each(|done| done.answer(()));
    }

    /// Records the status that a loop reports.
    pub(crate) fn note_status(&mut self, session: SessionId, who: ActorId, status: LiveStatus) {
        if let Some(hot) = self.slots.get_mut(&session).and_then(|slot| slot.hot(who)) {
            hot.status = Some(status);
        }
    }

    /// The live statuses, to be merged into lists.
    pub(crate) fn overlay(&self) -> BTreeMap<SessionId, LiveStatus> {
        let status = |slot: &Slot| match slot {
            Slot::Hot(hot) => hot.status.clone(),
            Slot::Loading(loading) => Some(plain(RunState::Starting, "its log is being read", loading.since)),
            Slot::Faulted { why, since } => Some(plain(RunState::Faulted, why, *since)),
        };
        self.slots
            .iter()
            .filter_map(|(session, slot)| Some((*session, status(slot)?)))
            .collect()
    }

    /// Statistics for people.
    pub(crate) fn stats(&self) -> SupervisorStats {
        SupervisorStats {
            hot: self.awake as u64,
            timed: self.wakes.len() as u64,
            crashes: self.crashes.total(),
            draining: self.draining.is_some(),
        }
    }
}

fn plain(state: RunState, reason: &str, since: Timestamp) -> LiveStatus {
    LiveStatus {
        seq: None,
        status: Status::new(state, reason, since),
    }
}
