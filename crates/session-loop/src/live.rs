//! The live status: what the log says, and what only this moment knows (who waits for a permit).

use crate::shell::Shell;
use agentd_actor_kit::{FeedMsg, SupervisorMsg};
use agentd_protocol::{Delta, RunState, Status, WaitReason};

/// What was reported last.
#[derive(Debug, Default)]
pub(crate) struct Live {
    touched: bool,
    last: Option<Status>,
}

impl Live {
    /// Something changed that the status may show.
    pub(crate) const fn touch(&mut self) {
        self.touched = true;
    }

    /// Whether this is news.
    fn news(&mut self, status: &Status) -> bool {
        let same = |last: &Status| {
            last.state == status.state
                && last.reason == status.reason
                && last.until == status.until
                && last.attempt == status.attempt
        };
        if self.last.as_ref().is_some_and(same) {
            return false;
        }
        self.last = Some(status.clone());
        true
    }
}

impl Shell {
    /// Tells the supervisor and the viewers, if it changed.
    pub(crate) fn report(&mut self) {
        // What is not durable is not told: who reads `idle` may look for the end of the turn in the log.
        if !self.live.touched || self.outbox.unacknowledged() > 0 {
            return;
        }
        self.live.touched = false;
        if self.agent.durable().head == 0 {
            return;
        }
        let status = self.status();
        if !self.live.news(&status) {
            return;
        }
        let who = self.me.get_id();
        let _ = self.supervisor.cast(SupervisorMsg::Status {
            session: self.session,
            who,
            status: status.clone(),
        });
        self.services.feed.cast(FeedMsg::Delta {
            session: self.session,
            delta: Delta::Status(status),
        });
    }

    fn status(&self) -> Status {
        let now = self.services.clock.now();
        let status = self.agent.status(now);
        let waits = match status.state {
            RunState::RunningModel => self
                .model
                .filter(|run| run.waits)
                .map(|_| "a permit of the provider"),
            RunState::RunningTool if self.tools.is_empty() => None,
            RunState::RunningTool => self
                .tools
                .values()
                .all(|run| run.waits)
                .then_some("a permit to run tools"),
            RunState::Queued
            | RunState::Starting
            | RunState::Waiting(_)
            | RunState::BackingOff
            | RunState::Compacting
            | RunState::Paused
            | RunState::Idle
            | RunState::Failed
            | RunState::Closed
            | RunState::Faulted => None,
        };
        match waits {
            Some(what) => Status {
                state: RunState::Waiting(WaitReason::Permit),
                reason: format!("waiting for {what}"),
                since: now,
                ..status
            },
            None => status,
        }
    }
}
