//! `fleet.history`: how many sessions are in which state, now and in each minute of the last hour.

use crate::api::Api;
use crate::reads::live;
use crate::sight::Caller;
use agentd_actor_kit::Read;
use agentd_protocol::{Fault, FleetCounts, FleetHistory, RunState};
use agentd_store::Filter;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Minutes that are kept.
const KEPT: usize = 60;
/// Rows that one read of a limited caller's sessions returns.
const PAGE: u32 = 500;

/// The counts of the last minutes, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Minutes(Mutex<VecDeque<FleetCounts>>);

impl Minutes {
    fn add(&self, counts: FleetCounts) {
        let mut minutes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if minutes.len() >= KEPT {
            minutes.pop_front();
        }
        minutes.push_back(counts);
    }

    fn read(&self) -> Vec<FleetCounts> {
        let minutes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        minutes.iter().copied().collect()
    }
}

/// Numbers of sessions by state.
type States = HashMap<RunState, u64>;

impl Api {
    /// Counts the fleet for its history. To be called once a minute.
    ///
    /// # Errors
    /// The store or the supervisor does not answer; the minute is left out.
    pub async fn count_minute(&self) -> Result<(), Fault> {
        self.minutes.add(totals(&self.states().await?));
        Ok(())
    }

    pub(crate) async fn fleet_history(&self, who: &Caller) -> Result<FleetHistory, Fault> {
        let (states, minutes) = match who.limits() {
            None => (self.states().await?, self.minutes.read()),
            Some(_) => (self.states_seen(who).await?, Vec::new()),
        };
        Ok(FleetHistory {
            at: self.parts.clock.now(),
            totals: totals(&states),
            states: states
                .into_iter()
                .map(|(state, sessions)| (state.as_str().to_owned(), sessions))
                .collect(),
            minutes,
        })
    }

    /// Counts stored states, and replaces those of sessions with an actor by their live ones. So no row is parsed.
    async fn states(&self) -> Result<States, Fault> {
        let overlay = self.statuses().await?;
        let hot: Vec<_> = overlay.keys().copied().collect();
        let all = self.read(|done| Read::States { of: None, done }).await?;
        let hot = self.read(|done| Read::States { of: Some(hot), done }).await?;
        let mut states: States = parsed(all).collect();
        for (state, sessions) in parsed(hot) {
            let count = states.entry(state).or_default();
            *count = count.saturating_sub(sessions);
        }
        for live in overlay.values() {
            *states.entry(live.status.state).or_default() += 1;
        }
        states.retain(|state, sessions| *state != RunState::Closed && *sessions > 0);
        Ok(states)
    }

    /// The same over the sessions that a limited caller sees.
    async fn states_seen(&self, who: &Caller) -> Result<States, Fault> {
        let overlay = self.statuses().await?;
        let mut filter = Filter {
            limit: PAGE,
            ..Filter::default()
        };
        let mut states = States::new();
        loop {
            let rows = self.rows(who, filter.clone()).await?;
            let Some(last) = rows.last().map(|row| row.summary.session) else {
                return Ok(states);
            };
            for row in rows {
                if !row.damaged && who.sees(&row.summary.labels) {
                    *states.entry(live(row, &overlay).status.state).or_default() += 1;
                }
            }
            filter.after = Some(last.into());
        }
    }
}

fn totals(states: &States) -> FleetCounts {
    let mut counts = FleetCounts::default();
    for (state, sessions) in states {
        counts.add(*state, *sessions);
    }
    counts
}

/// A state of a later version is left out.
fn parsed(states: BTreeMap<String, u64>) -> impl Iterator<Item = (RunState, u64)> {
    states
        .into_iter()
        .filter_map(|(state, sessions)| Some((RunState::parse(&state)?, sessions)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_keeps_one_hour() {
        let minutes = Minutes::default();
        for running in 0..=KEPT as u64 {
            minutes.add(FleetCounts {
                running,
                ..FleetCounts::default()
            });
        }
        let kept: Vec<u64> = minutes.read().iter().map(|counts| counts.running).collect();
        assert_eq!(kept, (1..=KEPT as u64).collect::<Vec<_>>());
    }
}
