//! Rest: when a loop has nothing to do, it asks the supervisor to go cold.

use crate::error::LoopError;
use crate::shell::Shell;
use crate::work::ModelRun;
use agentd_actor_kit::{Alarm, SessionMsg, SupervisorMsg};
use agentd_protocol::{FailureClass, Timestamp};
use agentd_turn::{Input, ModelFailure};
use std::time::Duration;

/// How far this loop is on its way to sleep.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    alarm: Option<Alarm>,
    draining: bool,
}

impl Shell {
    /// Nothing runs, nothing is decided and not durable, nothing is asked of anybody.
    fn quiet(&self) -> bool {
        self.agent.at_rest() && self.outbox.is_empty() && self.kids.is_empty() && self.follow.is_empty()
    }

    /// After each message: the way to sleep begins, begins anew, or ends.
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

    /// The supervisor, or the own alarm, wants to know whether this loop may go cold.
    pub(crate) fn idle_asked(&self) {
        if self.stop.is_none() && self.quiet() && self.grace().is_some() {
            self.ask_to_sleep();
        }
    }

    /// How long to stay; `None`: it goes on by itself soon.
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
            // Created and left alone: nobody is talking to it, so a thousand of them at once cost nothing.
            None if durable.last.is_none() && durable.turn.is_none() => Some(Duration::ZERO),
            // A sub-agent that ended has nobody to wait for, and who waits for one is woken by it.
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

    /// The daemon drains.
    pub(crate) async fn drain(&mut self) -> Result<(), LoopError> {
        self.rest.draining = true;
        self.advance(Input::Drain).await?;
        self.hurry_summary(None, "the daemon stops").await?;
        match self.model.filter(|run| run.waits.is_some()) {
            Some(run) => self.leave_line(run).await,
            None => Ok(()),
        }
    }

    /// A call that was not admitted has sent nothing: it does not hold the drain up, and goes on after the restart.
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
