//! Routing: every command passes through here, so none is lost when a session goes cold.

use super::slot::Slot;
use super::{Action, Supervisor, SupervisorMutant};
use agentd_actor_kit::{LoopId, Routed};
use agentd_protocol::{Fault, SessionId};
use agentd_turn::Command;

/// The shortest interval between two sweeps for idle loops.
const SWEEP_MS: u64 = 1_000;

impl Supervisor {
    /// Passes a command to its session; a cold session is loaded first.
    pub fn route(&mut self, routed: Routed) {
        if let Some(fault) = self.refused_by_drain(&routed) {
            return routed.done.answer(Err(fault));
        }
        let most = self.bounds.waiting_per_session;
        let twice = self.has(SupervisorMutant::DoubleLoad);
        match self.slots.get_mut(&routed.session) {
            Some(Slot::Hot(hot)) => {
                hot.routed = hot.routed.saturating_add(1);
                let who = hot.who;
                self.act(Action::Send(who, routed));
            }
            Some(Slot::Loading(loading)) if loading.waiting.len() >= most => {
                let fault = Fault::busy(
                    "session_loading",
                    "too many commands are waiting for the session to be loaded",
                );
                routed.done.answer(Err(fault.hint("try again in a moment")));
            }
            Some(Slot::Loading(_)) if twice => self.load(routed.session, Some(routed)),
            Some(Slot::Loading(loading)) => loading.waiting.push_back(routed),
            Some(Slot::Faulted { .. }) if matches!(*routed.command, Command::Resume { .. }) => {
                self.vacate(routed.session);
                self.crashes.forget(routed.session);
                self.wake_for(routed);
            }
            Some(Slot::Faulted { why, .. }) => routed.done.answer(Err(faulted(routed.session, why))),
            None => self.wake_for(routed),
        }
    }

    /// A loop has died and cannot take a command: the session is loaded again. The exit is reported later.
    pub fn undelivered(&mut self, who: LoopId, routed: Routed) {
        self.gone(routed.session, who);
        self.route(routed);
    }

    /// Loads a cold session for a command as soon as there is room.
    fn wake_for(&mut self, routed: Routed) {
        if self.has_room_for(&routed) {
            return self.load(routed.session, Some(routed));
        }
        if self.queue.len() >= self.bounds.waiting_for_room {
            let fault = Fault::busy("sessions_hot", "too many sessions are in memory")
                .hint("try again in a moment, or raise limits.sessions_hot");
            return routed.done.answer(Err(fault));
        }
        if reports(&routed) {
            self.queue.push_front(routed);
        } else {
            self.queue.push_back(routed);
        }
        self.sweep();
    }

    pub(super) const fn has_room(&self) -> bool {
        self.awake < self.bounds.hot
    }

    /// A sub-agent that reports stays in memory until its parent has the report, so its parent does not wait for that
    /// room (I6).
    fn has_room_for(&self, routed: &Routed) -> bool {
        self.has_room() || reports(routed) && self.awake < self.bounds.hot.saturating_mul(2)
    }

    /// Asks all loops to report if they are idle.
    fn sweep(&mut self) {
        if self.now.since_ms(self.swept_at) >= SWEEP_MS {
            self.swept_at = self.now;
            self.act(Action::AskIdle);
        }
    }

    /// There is room again: waiting commands go first, then sessions that wake by themselves.
    pub(super) fn room_made(&mut self) {
        while self.queue.front().is_some_and(|next| self.has_room_for(next))
            && let Some(routed) = self.queue.pop_front()
        {
            self.route(routed);
        }
        self.arm_tick();
        self.check_drained();
    }
}

/// Whether a sub-agent tells its parent that it ended.
fn reports(routed: &Routed) -> bool {
    matches!(*routed.command, Command::ChildEnded { .. })
}

/// The error for commands to a faulted session.
pub(super) fn faulted(session: SessionId, why: &str) -> Fault {
    Fault::conflict(
        "faulted",
        format!("session {} is faulted: {why}", session.short()),
    )
    .hint(format!(
        "look at the log, then: agentctl resume {}",
        session.short()
    ))
}
