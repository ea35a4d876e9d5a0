//! Rest: a loop with nothing to do asks the supervisor to let it go cold.

use crate::error::LoopError;
use crate::shell::Shell;
use agentd_actor_kit::{Alarm, LoopId, SessionMsg, SupervisorMsg, Work};
use std::time::Duration;

impl Shell {
    /// How long to stay hot; `None`: something runs, or the session continues by itself soon.
    fn grace(&self) -> Option<Duration> {
        let rests = self.core.stop().is_none() && self.core.quiet() && self.running.is_empty();
        let grace = || self.core.grace(self.services.clock.now(), &self.services.timing);
        rests.then(grace).flatten()
    }

    /// Runs after each message: starts, restarts or cancels the way to going cold.
    pub(crate) fn settle_down(&mut self) {
        self.idle = None;
        let Some(grace) = self.grace() else { return };
        let after = if grace.is_zero() {
            self.ask_to_sleep();
            // The supervisor may not know this loop yet.
            self.services.timing.parked
        } else {
            grace
        };
        self.idle = Some(Alarm::set(&self.me, after, SessionMsg::Idle));
    }

    /// The supervisor, or the loop's own alarm, asks whether this loop may go cold.
    pub(crate) fn idle_asked(&self) {
        if self.grace().is_some() {
            self.ask_to_sleep();
        }
    }

    fn ask_to_sleep(&self) {
        let idle = SupervisorMsg::Idle {
            session: self.session,
            who: LoopId(self.me.get_id().pid()),
            handled: self.core.handled(),
            wake_at: self.core.wake_at(self.services.clock.now()),
        };
        let _ = self.supervisor.cast(idle);
    }

    /// Prepares the loop for the daemon's drain.
    pub(crate) async fn drain(&mut self) -> Result<(), LoopError> {
        self.core.drain();
        self.run_followers().await?;
        self.hurry_summary(None, "the daemon stops").await?;
        if let Some((call, attempt)) = self.core.leave_line() {
            self.running.kill(&Work::Model { call, attempt });
            self.live.touch();
        }
        self.run_followers().await
    }
}
