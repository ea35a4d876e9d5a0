//! How loops end: passivation, crash, eviction.

use super::slot::Slot;
use super::{Action, Supervisor, SupervisorMutant};
use agentd_actor_kit::{Done, Down, LoopId, Routed};
use agentd_protocol::{Fault, SessionId, Timestamp};
use agentd_session_loop::LOST;
use std::collections::VecDeque;

impl Supervisor {
    /// A loop reports that it is idle. It goes cold only if it is the current one and has processed everything sent to
    /// it: a command that is still in its mailbox keeps it hot (I1).
    pub fn idle(&mut self, session: SessionId, who: LoopId, handled: u64, wake_at: Option<Timestamp>) {
        let careless = self.has(SupervisorMutant::LostCommand);
        let hot = self.slots.get_mut(&session).and_then(|slot| slot.hot(who));
        if !hot.is_some_and(|hot| hot.routed == handled || careless) {
            return;
        }
        self.vacate(session);
        self.loops.remove(&who);
        self.act(Action::Stop(who));
        if let Some(at) = wake_at
            && self.draining.is_none()
            && !self.has(SupervisorMutant::LostWake)
        {
            self.wakes.set(session, at);
        }
        self.tell_cold(session);
        self.room_made();
    }

    /// A loop went down without being told to stop.
    pub fn down(&mut self, who: LoopId, why: Down) {
        if self.has(SupervisorMutant::LostExit) {
            return;
        }
        let Some(session) = self.loops.remove(&who) else {
            return;
        };
        self.gone(session, who);
        match why {
            Down::Failed(why) => self.crashed(session, &why, VecDeque::new()),
            // Its last append may still be in flight: a claim is ordered after it, but the row could be read too early.
            Down::Killed(why) if why == LOST && !self.has(SupervisorMutant::EarlyLook) => {
                self.wake_soon(session);
            }
            // Fenced or evicted: the log shows whether there is work to continue.
            Down::Killed(_) => self.look_again(session),
        }
        self.room_made();
    }

    /// Counts a crash, then reloads the session or faults it.
    pub(super) fn crashed(&mut self, session: SessionId, why: &str, waiting: VecDeque<Routed>) {
        tracing::error!(%session, why, "session loop crashed");
        let counted = match self.has(SupervisorMutant::MiscountedCrash) {
            true => SessionId::NIL,
            false => session,
        };
        if !self.crashes.forgive(counted, self.now) {
            return self.fault_awake(
                session,
                format!("its loop crashed too often, last: {why}"),
                waiting,
            );
        }
        for routed in waiting {
            let fault = Fault::unavailable("retry", "the session failed while agentd was loading it");
            routed.done.answer(Err(fault.hint("retry with the same key")));
        }
        self.wake_soon(session);
    }

    /// Faults a session that may already be loading or hot again.
    fn fault_awake(&mut self, session: SessionId, why: String, mut waiting: VecDeque<Routed>) {
        match self.vacate(session) {
            Some(Slot::Loading(loading)) => waiting.extend(loading.waiting),
            Some(Slot::Hot(hot)) => {
                self.loops.remove(&hot.who);
                self.act(Action::Kill(hot.who));
                self.tell_cold(session);
            }
            Some(Slot::Faulted { .. }) | None => {}
        }
        self.wakes.remove(session);
        self.fault(session, why, waiting);
    }

    /// Kills a loop without notifying it. The next command folds the log again.
    pub fn evict(&mut self, session: SessionId, done: Done<()>) {
        self.wakes.remove(session);
        if let Some(who) = self.hot(session) {
            self.act(Action::Kill(who));
            self.evictions.entry(session).or_default().push(done);
            return;
        }
        if let Some(Slot::Loading(loading)) = self.vacate(session) {
            for routed in loading.waiting {
                let fault =
                    Fault::unavailable("evicted", "the session was stopped while agentd was loading it");
                routed.done.answer(Err(fault.hint("retry with the same key")));
            }
        }
        done.answer(());
        self.room_made();
    }

    /// Revives a faulted session at a person's request. True if it was faulted.
    pub fn revive(&mut self, session: SessionId) -> bool {
        if !matches!(self.slots.get(&session), Some(Slot::Faulted { .. })) || self.draining.is_some() {
            return false;
        }
        self.vacate(session);
        self.crashes.forget(session);
        self.wakes.set(session, self.now);
        self.arm_tick();
        true
    }
}
