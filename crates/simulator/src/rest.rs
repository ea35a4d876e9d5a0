//! Rest: a loop with nothing to do goes cold.

use crate::hot::Hot;
use crate::messages::{Happening, Message};
use crate::world::World;
use agentd_session_loop::Timing;
use std::time::Duration;

/// The waits of a loop.
const TIMING: Timing = Timing {
    idle: Duration::from_secs(60),
    parked: Duration::from_secs(2),
    soon: Duration::from_secs(30),
    append: Duration::from_secs(30),
    retry_full: Duration::from_secs(2),
    load: Duration::from_secs(10),
};

impl World {
    /// How long the loop stays hot; `None`: something runs, or it continues by itself soon.
    fn grace(&self, hot: &Hot) -> Option<Duration> {
        let workers = self.workers.values().any(|worker| worker.owner == hot.number);
        let rests = hot.core.stop().is_none() && hot.core.quiet() && !workers;
        rests.then(|| hot.core.grace(self.now, &TIMING)).flatten()
    }

    pub(crate) fn rests(&self, hot: &Hot) -> bool {
        self.grace(hot).is_some() && self.routed(hot) == hot.core.handled()
    }

    /// After each message: starts or restarts the idle timer.
    pub(crate) fn settle_down(&mut self, hot: &mut Hot, asked: bool) {
        hot.idle += 1;
        if let Some(grace) = self.grace(hot) {
            let least = if asked {
                TIMING.parked
            } else {
                Duration::from_millis(1)
            };
            let after = u64::try_from(grace.max(least).as_millis()).unwrap_or(u64::MAX);
            self.post(after, Happening::Loop(hot.number, Message::Idle(hot.idle)));
        }
    }
}
