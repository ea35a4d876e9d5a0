//! Drain: nothing new starts, running work may finish until the deadline, the rest is killed and recovers at the next start.

use crate::slot::Slot;
use crate::state::State;
use agentd_actor_kit::{Alarm, Done, Routed, SessionMsg, SupervisorMsg};
use agentd_protocol::Fault;
use agentd_turn::Command;
use std::time::Duration;

/// A drain in progress.
#[derive(Debug)]
pub(crate) struct Draining {
    askers: Vec<Done<u64>>,
    _deadline: Alarm,
}

impl State {
    /// Starts to drain, or joins a drain in progress.
    pub(crate) fn drain(&mut self, deadline_ms: u64, done: Done<u64>) {
        if let Some(draining) = &mut self.draining {
            draining.askers.push(done);
            return self.check_drained();
        }
        let after = Duration::from_millis(deadline_ms);
        let deadline = Alarm::set(&self.me, after, SupervisorMsg::DrainDeadline);
        self.draining = Some(Draining {
            askers: vec![done],
            _deadline: deadline,
        });
        self.wakes.clear();
        self.tick = None;
        for routed in std::mem::take(&mut self.queue) {
            routed.done.answer(Err(draining()));
        }
        for slot in self.slots.values() {
            if let Slot::Hot(hot) = slot {
                let _ = hot.actor.cast(SessionMsg::Drain);
            }
        }
        self.check_drained();
    }

    /// Answers once the last loop is cold.
    pub(crate) fn check_drained(&mut self) {
        if self.awake == 0 {
            self.answer_drain(0);
        }
    }

    /// The deadline has passed: kills what is still running.
    pub(crate) fn drain_deadline(&mut self) {
        let left = self.awake as u64;
        let awake: Vec<_> = self.slots.keys().copied().collect();
        for session in awake {
            match self.slots.get(&session) {
                Some(Slot::Hot(hot)) => hot.actor.kill(),
                Some(Slot::Loading(_)) => {
                    if let Some(Slot::Loading(loading)) = self.vacate(session) {
                        loading
                            .waiting
                            .into_iter()
                            .for_each(|routed| routed.done.answer(Err(draining())));
                    }
                }
                Some(Slot::Faulted { .. }) | None => {}
            }
        }
        self.answer_drain(left);
    }

    fn answer_drain(&mut self, left: u64) {
        if let Some(draining) = &mut self.draining {
            std::mem::take(&mut draining.askers)
                .into_iter()
                .for_each(|done| done.answer(left));
        }
    }

    /// While draining, only hot sessions accept commands, and only those that start nothing.
    pub(crate) fn refused_by_drain(&self, routed: &Routed) -> Option<Fault> {
        self.draining.as_ref()?;
        let starts = matches!(
            *routed.command,
            Command::Create { .. } | Command::Send(_) | Command::Resume { .. }
        );
        let awake = matches!(
            self.slots.get(&routed.session),
            Some(Slot::Hot(_) | Slot::Loading(_))
        );
        (starts || !awake).then(draining)
    }
}

fn draining() -> Fault {
    Fault::unavailable("draining", "the daemon is stopping").hint("try again when it is back")
}
