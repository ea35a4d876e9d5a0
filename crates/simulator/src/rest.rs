//! Rest: a loop with nothing to do goes cold.

use crate::hot::Hot;
use crate::messages::{Happening, Message};
use crate::node::{MAIL_MS, NodeEvent};
use crate::world::World;
use agentd_actor_kit::LoopId;
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
        let workers = self
            .here
            .workers
            .values()
            .any(|worker| worker.owner == hot.number);
        let rests = hot.core.stop().is_none() && hot.core.quiet() && !workers;
        rests.then(|| hot.core.grace(self.now, &TIMING)).flatten()
    }

    /// The supervisor, or the loop's own alarm, asks whether this loop may go cold.
    pub(crate) fn idle_asked(&mut self, hot: &Hot) {
        if self.grace(hot).is_some() {
            self.ask_to_sleep(hot);
        }
    }

    fn ask_to_sleep(&mut self, hot: &Hot) {
        let idle = NodeEvent::Idle {
            session: hot.session,
            who: LoopId(hot.number),
            handled: hot.core.handled(),
            wake_at: hot.core.wake_at(self.now),
        };
        self.mail(MAIL_MS, idle);
    }

    /// After each message: starts or restarts the idle timer.
    pub(crate) fn settle_down(&mut self, hot: &mut Hot) {
        hot.idle += 1;
        let Some(grace) = self.grace(hot) else { return };
        let after = if grace.is_zero() {
            self.ask_to_sleep(hot);
            // The supervisor may not know this loop yet.
            TIMING.parked
        } else {
            grace
        };
        let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.post(after, Happening::Loop(hot.number, Message::Idle(Some(hot.idle))));
    }
}
