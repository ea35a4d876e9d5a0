//! Rest: a loop with nothing to do asks the supervisor to let it go cold.

use crate::error::LoopError;
use crate::shell::Shell;
use crate::work::ModelRun;
use agentd_actor_kit::{Alarm, SessionMsg, SupervisorMsg};
use agentd_protocol::{FailureClass, Timestamp};
use agentd_turn::{Input, ModelFailure};
use std::time::Duration;

/// How far this loop is on its way to going cold.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    alarm: Option<Alarm>,
    draining: bool,
}

impl Shell {
    /// Whether nothing runs, every decision is durable, and no request is open.
    fn quiet(&self) -> bool {
        self.agent.at_rest() && self.outbox.is_empty() && self.kids.is_empty() && self.follow.is_empty()
    }

    /// Runs after each message: starts, restarts or cancels the way to going cold.
    pub(crate) fn settle_down(&mut self) {
        self.rest.alarm = None;
        if self.stop.is_some() || !self.quiet() {
            return;
        }
        match self.grace() {
            Some(Duration::ZERO) => {
                self.ask_to_sleep();
                // The supervisor may not know this loop yet.
                let again = self.services.timing.parked;
                self.rest.alarm = Some(Alarm::set(&self.me, again, SessionMsg::Idle));
            }
            Some(grace) => self.rest.alarm = Some(Alarm::set(&self.me, grace, SessionMsg::Idle)),
            None => {}
        }
    }

    /// The supervisor, or the loop's own alarm, asks whether this loop may go cold.
    pub(crate) fn idle_asked(&self) {
        if self.stop.is_none() && self.quiet() && self.grace().is_some() {
            self.ask_to_sleep();
        }
    }

    /// How long to stay hot; `None`: the session continues by itself soon.
    fn grace(&self) -> Option<Duration> {
        let timing = &self.services.timing;
        let durable = self.agent.durable();
        if durable.head == 0 || durable.closed.is_some() || self.rest.draining {
            return Some(Duration::ZERO);
        }
        let now = self.services.clock.now();
        let soon = u64::try_from(timing.soon.as_millis()).unwrap_or(u64::MAX);
        match self.wake_at() {
            Some(at) if at <= now.plus_ms(soon) => None,
            Some(_) => Some(timing.parked),
            // Created and not used yet: no one is talking to it, so a thousand of them at once cost nothing.
            None if durable.last.is_none() && durable.turn.is_none() => Some(Duration::ZERO),
            // An ended sub-agent waits for no one. A session that waits for sub-agents is woken by them.
            None if durable.approvals.is_empty() && durable.children.is_empty() => Some(timing.idle),
            None => Some(timing.parked),
        }
    }

    fn wake_at(&self) -> Option<Timestamp> {
        self.agent.summary(self.services.clock.now()).wake_at
    }

    fn ask_to_sleep(&self) {
        let idle = SupervisorMsg::Idle {
            session: self.session,
            who: self.me.get_id(),
            handled: self.handled,
            wake_at: self.wake_at(),
        };
        let _ = self.supervisor.cast(idle);
    }

    /// Prepares the loop for the daemon's drain.
    pub(crate) async fn drain(&mut self) -> Result<(), LoopError> {
        self.rest.draining = true;
        self.advance(Input::Drain).await?;
        self.hurry_summary(None, "the daemon stops").await?;
        match self.model.filter(|run| run.waits.is_some()) {
            Some(run) => self.leave_line(run).await,
            None => Ok(()),
        }
    }

    /// A call without a permit has sent nothing: it does not delay the drain, and continues after the restart.
    async fn leave_line(&mut self, run: ModelRun) -> Result<(), LoopError> {
        let ModelRun { call, attempt, .. } = run;
        self.kill_model(call, attempt);
        let failure = ModelFailure {
            retry_after_ms: Some(1),
            refused: true,
            ..ModelFailure::new(
                FailureClass::Transient,
                "not sent: the daemon stopped before its turn came",
            )
        };
        self.advance(Input::ModelFailed {
            call,
            attempt,
            failure,
        })
        .await
    }
}
