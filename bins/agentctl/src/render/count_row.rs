//! The rows of `ps --counts`.

use crate::output::Row;
use crate::render::Column;
use agentd_protocol::{FleetCounts, FleetHistory, Timestamp};
use serde::Serialize;

/// The heights of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The sessions of one group of states.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CountRow {
    state: &'static str,
    sessions: u64,
    /// The same in each minute of the last hour, oldest first.
    minutes: Vec<u64>,
}

type Pick = fn(&FleetCounts) -> u64;

/// One row for each group of states, those that need a person first.
pub(crate) fn count_rows(history: &FleetHistory) -> Vec<CountRow> {
    let groups: [(&str, Pick); 6] = [
        ("waiting for a person", |counts| counts.waiting_person),
        ("failed", |counts| counts.failed),
        ("rate limited", |counts| counts.rate_limited),
        ("running", |counts| counts.running),
        ("paused", |counts| counts.paused),
        ("idle", |counts| counts.idle),
    ];
    groups
        .into_iter()
        .map(|(state, pick)| CountRow {
            state,
            sessions: pick(&history.totals),
            minutes: history.minutes.iter().map(pick).collect(),
        })
        .collect()
}

/// A bar for each value. The highest value has the highest bar, and a value above zero never has the lowest.
fn bars(values: &[u64]) -> String {
    let most = values.iter().max().copied().unwrap_or_default().max(1);
    let top = BARS.len() as u64 - 1;
    let bar = |value: &u64| {
        let height = value.saturating_mul(top).div_ceil(most);
        usize::try_from(height)
            .ok()
            .and_then(|height| BARS.get(height))
            .unwrap_or(&' ')
    };
    values.iter().map(bar).collect()
}

impl Row for CountRow {
    fn columns(_wide: bool) -> Vec<Column> {
        vec![
            Column::whole("state", 0),
            Column::whole("sessions", 0),
            Column::text("last hour", 1, 10),
        ]
    }

    fn cells(&self, _wide: bool, _now: Timestamp) -> Vec<String> {
        vec![
            self.state.to_owned(),
            self.sessions.to_string(),
            bars(&self.minutes),
        ]
    }

    fn name(&self) -> String {
        self.state.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_values() {
        assert_eq!(bars(&[0, 1, 50, 100]), "▁▂▅█");
        assert_eq!(bars(&[0, 0]), "▁▁");
        assert_eq!(bars(&[]), "");
    }

    #[test]
    fn each_group_has_its_row() {
        let history = FleetHistory {
            at: Timestamp(0),
            states: [].into(),
            totals: FleetCounts {
                failed: 2,
                ..FleetCounts::default()
            },
            minutes: vec![FleetCounts {
                failed: 1,
                ..FleetCounts::default()
            }],
        };
        let rows = count_rows(&history);
        let failed = rows.iter().find(|row| row.state == "failed").unwrap();
        assert_eq!(
            (rows.len(), failed.sessions, failed.minutes.as_slice()),
            (6, 2, [1].as_slice())
        );
    }
}
