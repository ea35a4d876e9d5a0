//! The live status: the log's status, plus what is known only at this moment (such as waiting for a permit).

use crate::shell::Shell;
use agentd_actor_kit::{FeedMsg, Hold, LiveStatus, LoopId, QueuePosition, SupervisorMsg};
use agentd_protocol::{Delta, RunState, Seq, Status, Timestamp, WaitReason};

/// The last reported status.
#[derive(Debug, Default)]
pub(crate) struct Live {
    touched: bool,
    last: Option<Status>,
    /// The end of the log at the last report to the supervisor.
    seq: Seq,
}

impl Live {
    /// Marks a change that the status may show.
    pub(crate) const fn touch(&mut self) {
        self.touched = true;
    }

    /// Whether this status differs from the last one.
    fn news(&mut self, status: &Status) -> bool {
        let same = |last: &Status| {
            last.state == status.state
                && last.reason == status.reason
                && last.until == status.until
                && last.attempt == status.attempt
                && last.position == status.position
        };
        if self.last.as_ref().is_some_and(same) {
            return false;
        }
        self.last = Some(status.clone());
        true
    }
}

impl Shell {
    /// Reports the status to the supervisor and the viewers if it changed.
    pub(crate) fn report(&mut self) {
        // Reports only durable state: a reader of `idle` may look for the end of the turn in the log.
        if !self.live.touched || self.core.outbox.unacknowledged() > 0 {
            return;
        }
        self.live.touched = false;
        let seq = self.core.agent.durable().head;
        if seq == 0 {
            return;
        }
        let status = self.status();
        let news = self.live.news(&status);
        // The stored row has only the lasting status. A status known only at this moment must not look older than the row.
        let outrun = seq > self.live.seq && {
            let row = self.core.agent.lasting_status(self.services.clock.now());
            row.state != status.state
        };
        if news || outrun {
            self.live.seq = seq;
            let _ = self.supervisor.cast(SupervisorMsg::Status {
                session: self.session,
                who: LoopId(self.me.get_id().pid()),
                status: LiveStatus {
                    seq: Some(seq),
                    status: status.clone(),
                },
            });
        }
        if news {
            self.services.feed.cast(FeedMsg::Delta {
                session: self.session,
                delta: Delta::Status(status),
            });
        }
    }

    fn status(&self) -> Status {
        let now = self.services.clock.now();
        let status = self.core.agent.status(now);
        match status.state {
            RunState::RunningModel => match self.core.model().and_then(|run| run.waits) {
                Some(place) => in_line(&status, place, now),
                None => status,
            },
            RunState::RunningTool if !self.tools.is_empty() && self.tools.values().all(|run| run.waits) => {
                Status {
                    state: RunState::Waiting(WaitReason::Permit),
                    reason: "waiting for a permit to run tools".to_owned(),
                    since: now,
                    ..status
                }
            }
            RunState::RunningTool
            | RunState::Queued
            | RunState::Starting
            | RunState::Waiting(_)
            | RunState::BackingOff
            | RunState::Compacting
            | RunState::Paused
            | RunState::Idle
            | RunState::Failed
            | RunState::Closed
            | RunState::Faulted => status,
        }
    }
}

/// The status of a model call that waits in a queue.
fn in_line(status: &Status, place: Option<QueuePosition>, now: Timestamp) -> Status {
    let hold = place.and_then(|place| place.hold);
    let state = match hold {
        Some(Hold::Rate) => WaitReason::RateLimit,
        Some(Hold::Circuit) => WaitReason::Provider,
        None => WaitReason::Permit,
    };
    let what = match hold {
        Some(Hold::Rate) => "the provider's rate limit",
        Some(Hold::Circuit) => "the provider, which keeps failing: one call probes it",
        None => "a permit of the provider",
    };
    // The position comes first: lists show only the beginning.
    let eta = place.and_then(|place| place.eta_ms);
    let line = place.map_or_else(String::new, |place| {
        format!("{} of {} in line, ", place.position, place.of)
    });
    let about = eta.map_or_else(String::new, |ms| format!("about {} s, ", ms.div_ceil(1_000)));
    Status {
        state: RunState::Waiting(state),
        reason: format!("{line}{about}waiting for {what}"),
        since: now,
        until: eta.map(|ms| now.plus_ms(ms)),
        attempt: status.attempt,
        position: place.map(|place| place.position),
    }
}
