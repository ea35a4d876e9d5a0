//! How loops end: passivation, crash, eviction.

use crate::slot::Slot;
use crate::state::State;
use agentd_actor_kit::{Done, Down, Routed};
use agentd_fault_points as fault;
use agentd_protocol::{Fault, SessionId, Timestamp};
use agentd_session_loop::LOST;
use ractor::ActorId;
use std::collections::VecDeque;

impl State {
    /// A loop reports that it is idle. It goes cold only if it is the current one and has processed everything sent to
    /// it: a command that is still in its mailbox keeps it hot (I1).
    pub(crate) fn idle(
        &mut self,
        session: SessionId,
        who: ActorId,
        handled: u64,
        wake_at: Option<Timestamp>,
    ) {
        let hot = self.slots.get_mut(&session).and_then(|slot| slot.hot(who));
        let Some(actor) = hot
            .filter(|hot| hot.routed == handled)
            .map(|hot| hot.actor.clone())
        else {
            return;
        };
        if fault::point(fault::SESSION_COLD).is_err() {
            return;
        }
        self.vacate(session);
        self.loops.remove(&who);
        actor.stop(Some("passivated".to_owned()));
        if let Some(at) = wake_at
            && self.draining.is_none()
        {
            self.wakes.set(session, at);
        }
        self.tell_cold(session);
        self.room_made();
    }

    /// A loop went down without being told to stop.
    pub(crate) fn down(&mut self, who: ActorId, why: Down) {
        let Some(session) = self.loops.remove(&who) else {
            return;
        };
        if self
            .slots
            .get_mut(&session)
            .and_then(|slot| slot.hot(who))
            .is_some()
        {
            self.vacate(session);
            self.tell_cold(session);
        }
        match why {
            Down::Failed(why) => self.crashed(session, &why, VecDeque::new()),
            // Its last append may still be in flight: a claim is ordered after it, but the row could be read too early.
            Down::Killed(why) if why == LOST => self.wake_soon(session),
            // Fenced or evicted: the log shows whether there is work to continue.
            Down::Killed(_) => self.look_again(session),
        }
        self.room_made();
    }

    /// Counts a crash, then reloads the session or faults it.
    pub(crate) fn crashed(&mut self, session: SessionId, why: &str, waiting: VecDeque<Routed>) {
        tracing::error!(%session, why, "session loop crashed");
        if !self.crashes.forgive(session, self.now()) {
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
                self.loops.remove(&hot.actor.get_id());
                hot.actor.kill();
                self.tell_cold(session);
            }
            Some(Slot::Faulted { .. }) | None => {}
        }
        self.wakes.remove(session);
        self.fault(session, why, waiting);
    }

    /// Kills a loop without notifying it. The next command folds the log again.
    pub(crate) fn evict(&mut self, session: SessionId, done: Done<()>) {
        self.wakes.remove(session);
        match self.slots.get(&session) {
            Some(Slot::Hot(hot)) => {
                hot.actor.kill();
                self.evictions.entry(session).or_default().push(done);
                return;
            }
            Some(Slot::Loading(_) | Slot::Faulted { .. }) | None => {}
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

    /// Revives a faulted session at a person's request.
    pub(crate) fn revive(&mut self, session: SessionId) -> bool {
        if !matches!(self.slots.get(&session), Some(Slot::Faulted { .. })) || self.draining.is_some() {
            return false;
        }
        self.vacate(session);
        self.crashes.forget(session);
        self.wakes.set(session, self.now());
        self.arm_tick();
        true
    }
}
