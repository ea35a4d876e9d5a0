//! The timers of the core.

use agentd_actor_kit::{Alarm, SessionMsg};
use agentd_turn::TimerKey;
use ractor::ActorRef;
use std::collections::BTreeMap;
use std::time::Duration;

/// The core's timers. A message of an aborted timer may still be in the mailbox, so each carries its generation.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeMap<TimerKey, (u64, Alarm)>);

impl Timers {
    /// Sets or replaces a timer.
    pub(crate) fn set(&mut self, to: &ActorRef<SessionMsg>, key: TimerKey, generation: u64, after_ms: u64) {
        let message = SessionMsg::Timer { key, generation };
        let alarm = Alarm::set(to, Duration::from_millis(after_ms), message);
        self.0.insert(key, (generation, alarm));
    }

    /// Drops a timer.
    pub(crate) fn clear(&mut self, key: TimerKey) {
        self.0.remove(&key);
    }

    /// Handles a fired timer; false when it was replaced or dropped in the meantime.
    pub(crate) fn fired(&mut self, key: TimerKey, generation: u64) -> bool {
        let current = self.0.get(&key).is_some_and(|(of, _)| *of == generation);
        if current {
            self.0.remove(&key);
        }
        current
    }

    /// Drops all of them.
    pub(crate) fn clear_all(&mut self) {
        self.0.clear();
    }
}
