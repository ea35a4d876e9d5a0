//! Drain: nothing new starts, running work may finish until the deadline, the rest is killed and recovers at the next start.

use super::slot::Slot;
use super::{Action, Supervisor};
use agentd_actor_kit::{Done, Routed};
use agentd_protocol::Fault;
use agentd_turn::Command;

impl Supervisor {
    /// Starts to drain, or joins a drain in progress.
    pub fn drain(&mut self, deadline_ms: u64, done: Done<u64>) {
        if let Some(askers) = &mut self.draining {
            askers.push(done);
            return self.check_drained();
        }
        self.draining = Some(vec![done]);
        self.act(Action::SetDrainDeadline(deadline_ms));
        self.wakes.clear();
        self.arm_tick();
        for routed in std::mem::take(&mut self.queue) {
            routed.done.answer(Err(draining()));
        }
        self.act(Action::DrainLoops);
        self.check_drained();
    }

    /// Answers once the last loop is cold.
    pub(super) fn check_drained(&mut self) {
        if self.awake == 0 {
            self.answer_drain(0);
        }
    }

    /// The deadline has passed: kills what is still running.
    pub fn drain_deadline(&mut self) {
        let left = self.awake as u64;
        let awake: Vec<_> = self.slots.keys().copied().collect();
        for session in awake {
            match self.slots.get(&session) {
                Some(Slot::Hot(hot)) => {
                    let who = hot.who;
                    self.act(Action::Kill(who));
                }
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
        for done in self.draining.iter_mut().flat_map(std::mem::take) {
            done.answer(left);
        }
    }

    /// While draining, only hot sessions accept commands, and only those that start nothing.
    pub(super) fn refused_by_drain(&self, routed: &Routed) -> Option<Fault> {
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
