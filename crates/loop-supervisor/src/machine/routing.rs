//! Routing: every command passes through here, so none is lost when a session goes cold.

use crate::slot::Slot;
use crate::state::State;
use agentd_actor_kit::{Routed, SessionMsg};
use agentd_protocol::{Fault, SessionId};
use agentd_turn::Command;
use ractor::MessagingErr;

/// The shortest interval between two sweeps for idle loops.
const SWEEP_MS: u64 = 1_000;

impl State {
    /// Passes a command to its session; a cold session is loaded first.
    pub(crate) fn route(&mut self, routed: Routed) {
        if let Some(fault) = self.refused_by_drain(&routed) {
            return routed.done.answer(Err(fault));
        }
        let most = self.bounds.waiting_per_session;
        match self.slots.get_mut(&routed.session) {
            Some(Slot::Hot(_)) => self.send(routed),
            Some(Slot::Loading(loading)) if loading.waiting.len() >= most => {
                let fault = Fault::busy(
                    "session_loading",
                    "too many commands are waiting for the session to be loaded",
                );
                routed.done.answer(Err(fault.hint("try again in a moment")));
            }
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

    /// Sends to a hot loop. If the loop has just died, the session is loaded again; the exit is reported later.
    pub(crate) fn send(&mut self, routed: Routed) {
        let session = routed.session;
        let Some(Slot::Hot(hot)) = self.slots.get_mut(&session) else {
            return self.route(routed);
        };
        let Routed {
            command,
            by,
            key,
            done,
            ..
        } = routed;
        match hot.actor.cast(SessionMsg::Command {
            command,
            by,
            key,
            done,
        }) {
            Ok(()) => hot.routed = hot.routed.saturating_add(1),
            Err(MessagingErr::SendErr(SessionMsg::Command {
                command,
                by,
                key,
                done,
            })) => {
                self.vacate(session);
                self.wake_for(Routed {
                    session,
                    command,
                    by,
                    key,
                    done,
                });
            }
            Err(_) => {}
        }
    }

    /// Loads a cold session for a command as soon as there is room.
    fn wake_for(&mut self, routed: Routed) {
        if self.has_room() {
            return self.load(routed.session, Some(routed));
        }
        if self.queue.len() >= self.bounds.waiting_for_room {
            let fault = Fault::busy("sessions_hot", "too many sessions are in memory")
                .hint("try again in a moment, or raise limits.sessions_hot");
            return routed.done.answer(Err(fault));
        }
        self.queue.push_back(routed);
        self.sweep();
    }

    pub(crate) fn has_room(&self) -> bool {
        self.awake < self.bounds.hot
    }

    /// Asks all loops to report if they are idle.
    fn sweep(&mut self) {
        let now = self.now();
        if now.since_ms(self.swept_at) < SWEEP_MS {
            return;
        }
        self.swept_at = now;
        for slot in self.slots.values() {
            if let Slot::Hot(hot) = slot {
                let _ = hot.actor.cast(SessionMsg::Idle);
            }
        }
    }

    /// There is room again: waiting commands go first, then sessions that wake by themselves.
    pub(crate) fn room_made(&mut self) {
        while self.has_room()
            && let Some(routed) = self.queue.pop_front()
        {
            self.route(routed);
        }
        self.arm_tick();
        self.check_drained();
    }
}

/// The error for commands to a faulted session.
pub(crate) fn faulted(session: SessionId, why: &str) -> Fault {
    Fault::conflict(
        "faulted",
        format!("session {} is faulted: {why}", session.short()),
    )
    .hint(format!(
        "look at the log, then: agentctl resume {}",
        session.short()
    ))
}
