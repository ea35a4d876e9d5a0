//! The pure part of the supervisor: which sessions are hot, loading or faulted, and what happens to them next. It knows no
//! actor, no runtime and no clock, so the simulator runs this same code under its seeds, with simulated loops.
//!
//! Flow: each message is a method call, after [`Supervisor::at`] has set the time. It leaves [`Action`]s, which the caller
//! takes with [`Supervisor::next_action`] and carries out.

mod crashes;
mod drain;
mod loading;
mod mutant;
mod passivation;
mod routing;
mod slot;
mod wakes;
mod waking;

pub use mutant::SupervisorMutant;
pub use waking::wake_time;

use crate::args::Bounds;
use agentd_actor_kit::{Done, LiveStatus, LoopId, Routed, SupervisorStats};
use agentd_protocol::{RunState, SessionCreated, SessionId, Status, Timestamp};
use agentd_session_loop::LoadPurpose;
use crashes::Crashes;
use slot::Slot;
use std::collections::{BTreeMap, VecDeque};
use wakes::Wakes;

/// Something that the caller carries out.
#[derive(Debug)]
pub enum Action {
    /// Load the session, or make a new one if `created` is set. Report the outcome to [`Supervisor::loaded`], also if
    /// there is none.
    Load {
        /// The session.
        session: SessionId,
        /// Identifies the load.
        ticket: u64,
        /// The first event of a new session.
        created: Option<Box<SessionCreated>>,
        /// The purpose of the load: it decides whether the files must be here.
        purpose: LoadPurpose,
    },
    /// Give the command to the loop. If the loop cannot take it, return it to [`Supervisor::undelivered`].
    Send(LoopId, Routed),
    /// Stop the loop; forget it at once.
    Stop(LoopId),
    /// Kill the loop. Its exit is reported to [`Supervisor::down`].
    Kill(LoopId),
    /// Ask all loops to report if they are idle.
    AskIdle,
    /// Tell all loops to drain.
    DrainLoops,
    /// Tell a loop to drain.
    Drain(LoopId),
    /// A loop is gone: let others release what they keep for its session (I5).
    Cold(SessionId),
    /// The session is faulted: report it to the parent session, if it has one.
    Faulted(SessionId, String),
    /// Search the store for sessions that continue by themselves, now and at times; report them to [`Supervisor::found`].
    Scan,
    /// Check after a short delay whether the session continues by itself; report it to [`Supervisor::found`].
    Look(SessionId),
    /// Replace the timer that calls [`Supervisor::tick`]; `None`: remove it.
    SetTick(Option<Timestamp>),
    /// Set the timer that calls [`Supervisor::drain_deadline`], in milliseconds.
    SetDrainDeadline(u64),
}

/// The sessions that are not cold, pending wake-ups, crashes.
#[derive(Debug)]
pub struct Supervisor {
    bounds: Bounds,
    now: Timestamp,
    slots: BTreeMap<SessionId, Slot>,
    /// Loops that are running, or whose exit has not been reported yet.
    loops: BTreeMap<LoopId, SessionId>,
    /// The number of sessions in `slots` that are hot or loading.
    awake: usize,
    /// Commands for cold sessions that wait for room.
    queue: VecDeque<Routed>,
    swept_at: Timestamp,
    wakes: Wakes,
    /// When the timer for the next wake-up fires, if it is set.
    tick: Option<Timestamp>,
    ticked_at: Timestamp,
    crashes: Crashes,
    evictions: BTreeMap<SessionId, Vec<Done<()>>>,
    tickets: u64,
    /// Those who wait for the end of the drain in progress.
    draining: Option<Vec<Done<u64>>>,
    actions: VecDeque<Action>,
    mutant: Option<SupervisorMutant>,
}

impl Supervisor {
    /// A supervisor without loops, which first searches the store for sessions that continue by themselves.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            now: Timestamp::default(),
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
            actions: VecDeque::from([Action::Scan]),
            mutant: None,
        }
    }

    /// Sets the time of the next message.
    pub const fn at(&mut self, now: Timestamp) -> &mut Self {
        self.now = now;
        self
    }

    /// Takes the next action.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    /// Assigns a session its slot.
    fn occupy(&mut self, session: SessionId, slot: Slot) {
        self.vacate(session);
        if !matches!(slot, Slot::Faulted { .. }) {
            self.awake = self.awake.saturating_add(1);
        }
        self.slots.insert(session, slot);
    }

    /// Empties a slot.
    fn vacate(&mut self, session: SessionId) -> Option<Slot> {
        let slot = self.slots.remove(&session)?;
        if !matches!(slot, Slot::Faulted { .. }) {
            self.awake = self.awake.saturating_sub(1);
        }
        Some(slot)
    }

    /// Empties the slot of a loop that is gone, if the loop is still the session's own.
    fn gone(&mut self, session: SessionId, who: LoopId) {
        if self.hot(session) == Some(who) {
            self.vacate(session);
            self.tell_cold(session);
        }
    }

    /// A loop is gone: notifies those who keep something for it, and answers those who asked for its eviction.
    fn tell_cold(&mut self, session: SessionId) {
        self.act(Action::Cold(session));
        let askers = self.evictions.remove(&session).unwrap_or_default();
        askers.into_iter().for_each(|done| done.answer(()));
    }

    /// Records the status that a loop reports.
    pub fn note_status(&mut self, session: SessionId, who: LoopId, status: LiveStatus) {
        if let Some(hot) = self.slots.get_mut(&session).and_then(|slot| slot.hot(who)) {
            hot.status = Some(status);
        }
    }

    /// The loop of a hot session.
    #[must_use]
    pub fn hot(&self, session: SessionId) -> Option<LoopId> {
        match self.slots.get(&session) {
            Some(Slot::Hot(hot)) => Some(hot.who),
            Some(Slot::Loading(_) | Slot::Faulted { .. }) | None => None,
        }
    }

    /// The live statuses, to be merged into lists.
    #[must_use]
    pub fn overlay(&self) -> BTreeMap<SessionId, LiveStatus> {
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

    /// The sessions that are not cold: a status may not have been reported yet.
    #[must_use]
    pub fn awake(&self) -> Vec<SessionId> {
        self.slots.keys().copied().collect()
    }

    /// Statistics for people.
    #[must_use]
    pub fn stats(&self) -> SupervisorStats {
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
