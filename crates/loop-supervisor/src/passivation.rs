//! The ends of loops: passivation, crash, eviction.

use crate::slot::Slot;
use crate::state::State;
use agentd_actor_kit::{Done, Down, Routed};
use agentd_fault_points as fault;
use agentd_protocol::{Fault, SessionId, Timestamp};
use agentd_session_loop::LOST;
use ractor::ActorId;
use std::collections::VecDeque;

impl State {
    /// A loop has nothing to do. It goes cold only if it is the current one and has seen everything that was sent to it:
    /// a command that is still in its mailbox keeps it hot (I1).
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

    /// A loop is down that nobody told to stop.
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
            // Its last append may still be on its way: only a claim goes behind it, the row may be read too early.
            Down::Killed(why) if why == LOST => self.wake_soon(session),
            // Fenced, or evicted: the log knows whether there is something to go on with.
            Down::Killed(_) => self.look_again(session),
        }
        self.room_made();
    }

    /// Counts a crash: the session is loaded again, or faulted.
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
            let fault = Fault::unavailable("retry", "the session failed while it was loaded");
            routed.done.answer(Err(fault.hint("retry with the same key")));
        }
        self.wake_soon(session);
    }

    /// Faults a session that may be on its way up again.
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

    /// Stops a loop without a word to it. The log is folded again at the next command.
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
                let fault = Fault::unavailable("evicted", "the session was stopped while it was loaded");
                routed.done.answer(Err(fault.hint("retry with the same key")));
            }
        }
        done.answer(());
        self.room_made();
    }

    /// A person said to go on with a faulted session.
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
