//! How many sessions are in which state, now and in the last hour.

use crate::stamp::Timestamp;
use crate::summary::{Group, RunState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Numbers of sessions by what people want to know of a state. Closed sessions are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct FleetCounts {
    /// At work: a model, a tool or a sub-agent.
    pub running: u64,
    /// Waiting for a person: an approval, an answer, a limit, quota or a credential.
    pub waiting_person: u64,
    /// Waiting for a provider: a rate limit, an outage, the next attempt.
    pub rate_limited: u64,
    /// Failed, faulted, or without their working directory.
    pub failed: u64,
    /// Idle.
    pub idle: u64,
    /// Paused by a person.
    pub paused: u64,
}

impl FleetCounts {
    /// Counts sessions in a state.
    pub const fn add(&mut self, state: RunState, sessions: u64) {
        let group = match state.group() {
            Group::Running => &mut self.running,
            Group::Person => &mut self.waiting_person,
            Group::Limited => &mut self.rate_limited,
            Group::Failed => &mut self.failed,
            Group::Idle => &mut self.idle,
            Group::Paused => &mut self.paused,
            Group::Closed => return,
        };
        *group = group.saturating_add(sessions);
    }
}

/// Answer of `fleet.history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetHistory {
    /// The time of the counts.
    pub at: Timestamp,
    /// Numbers of sessions by their exact state, such as `waiting(approval)`; states without a session are left out.
    pub states: BTreeMap<String, u64>,
    /// The same by group.
    pub totals: FleetCounts,
    /// The totals of the last hour, minute by minute, the oldest first. It begins when the daemon starts. Empty for a token
    /// that is limited to labels.
    pub minutes: Vec<FleetCounts>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_but_closed_is_in_one_group() {
        for (state, sessions) in RunState::all().zip(1..) {
            let mut counts = FleetCounts::default();
            counts.add(state, sessions);
            let FleetCounts {
                running,
                waiting_person,
                rate_limited,
                failed,
                idle,
                paused,
            } = counts;
            let sum = running + waiting_person + rate_limited + failed + idle + paused;
            assert_eq!(
                sum,
                if state == RunState::Closed { 0 } else { sessions },
                "{state}"
            );
        }
    }
}
