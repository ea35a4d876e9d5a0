//! States in colours, and a fleet in one line.

use crate::render::rows::SessionRow;
use crate::render::{Paint, count, dollars};
use agentd_protocol::RunState;

/// A state in its colour: active is green, waiting yellow, failed red, at rest dim.
pub(crate) fn state_tint(paint: Paint, cell: &str) -> String {
    let family = cell.trim_end().split('(').next().unwrap_or_default();
    match family {
        "running" | "starting" | "compacting" => paint.good(cell),
        "waiting" | "backing_off" | "paused" => paint.warn(cell),
        "failed" | "faulted" => paint.bad(cell),
        "idle" | "closed" => paint.dim(cell),
        _ => cell.to_owned(),
    }
}

/// The number of sessions, what needs attention, and the cost: `12 sessions: 3 running, 2 waiting for a person, $0.42`.
pub(crate) fn fleet_line(rows: &[SessionRow]) -> String {
    let mut parts = Vec::new();
    for group in GROUPS {
        let number = rows
            .iter()
            .filter(|row| group_of(row.state) == Some(group))
            .count();
        if number > 0 {
            parts.push(format!("{number} {group}"));
        }
    }
    let cost: f64 = rows.iter().map(|row| row.cost_usd).sum();
    if cost > 0.0 {
        parts.push(dollars(cost));
    }
    let sessions = count(u64::try_from(rows.len()).unwrap_or(u64::MAX), "session");
    if parts.is_empty() {
        sessions
    } else {
        format!("{sessions}: {}", parts.join(", "))
    }
}

/// The groups of a fleet summary, in display order.
const GROUPS: [&str; 6] = [
    "running",
    "waiting for a person",
    "waiting",
    "paused",
    "failed",
    "faulted",
];

/// The group that a session counts towards; `None` for sessions at rest.
const fn group_of(state: RunState) -> Option<&'static str> {
    Some(match state {
        RunState::Starting | RunState::RunningModel | RunState::RunningTool | RunState::Compacting => {
            "running"
        }
        state if state.blocked() => "waiting for a person",
        RunState::Queued | RunState::Waiting(_) | RunState::BackingOff => "waiting",
        RunState::Paused => "paused",
        RunState::Failed => "failed",
        RunState::Faulted => "faulted",
        RunState::Idle | RunState::Closed => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_the_colour_of_its_family() {
        let shown = |state: RunState| state_tint(Paint::new(true), &format!("{:<19}", state.as_str()));
        for (word, colour) in [
            ("running(model)", "32"),
            ("waiting(approval)", "33"),
            ("backing_off", "33"),
            ("failed", "31"),
            ("faulted", "31"),
            ("idle", "2"),
            ("closed", "2"),
        ] {
            let cell = shown(RunState::parse(word).unwrap());
            assert_eq!(cell, format!("\x1b[{colour}m{word:<19}\x1b[0m"));
        }
        let plain = state_tint(Paint::new(false), "running(tool)");
        assert_eq!(plain, "running(tool)");
        // Every state has a colour, also those added later; only one that has not begun has none.
        let bare: Vec<RunState> = RunState::all()
            .filter(|state| !shown(*state).contains('\x1b'))
            .collect();
        assert_eq!(bare, [RunState::Queued]);
    }
}
