//! Rest: how long a loop with nothing to do stays hot.

use crate::machine::Machine;
use crate::services::Timing;
use crate::work::Task;
use agentd_protocol::Timestamp;
use agentd_turn::Input;
use std::time::Duration;

impl Machine {
    /// Whether every decision is durable, and no input is open. Workers are the caller's.
    #[must_use]
    pub fn quiet(&self) -> bool {
        self.agent.at_rest() && self.outbox.is_empty() && self.follow.is_empty()
    }

    /// How long to stay hot; `None`: the session continues by itself soon.
    #[must_use]
    pub fn grace(&self, now: Timestamp, timing: &Timing) -> Option<Duration> {
        let durable = self.agent.durable();
        if durable.head == 0 || durable.closed.is_some() || self.draining {
            return Some(Duration::ZERO);
        }
        let soon = u64::try_from(timing.soon.as_millis()).unwrap_or(u64::MAX);
        match self.wake_at(now) {
            Some(at) if at <= now.plus_ms(soon) => None,
            Some(_) => Some(timing.parked),
            // Created and not used yet: no one is talking to it, so a thousand of them at once cost nothing.
            None if durable.last.is_none() && durable.turn.is_none() => Some(Duration::ZERO),
            // An ended sub-agent waits for no one. A session that waits for sub-agents is woken by them.
            None if durable.approvals.is_empty() && durable.children.is_empty() => Some(timing.idle),
            None => Some(timing.parked),
        }
    }

    /// When the session continues by itself.
    #[must_use]
    pub fn wake_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.agent.summary(now).wake_at
    }

    /// The daemon drains: nothing new starts.
    pub fn drain(&mut self) {
        self.draining = true;
        self.push(Task::of(Input::Drain));
    }
}
