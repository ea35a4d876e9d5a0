//! The limits of a session, and where each was set.

use crate::render::word;
use agentd_protocol::{Budget, LoopLimits};

/// The lines of `show`: one for each limit that was set explicitly, and one for all built-in values.
pub(crate) fn limit_lines(limits: &LoopLimits, budget: &Budget) -> Vec<(&'static str, String)> {
    let (mut set, mut built_in) = (Vec::new(), Vec::new());
    for (key, value) in values(limits) {
        match limits.from.get(key) {
            Some(from) => set.push(("limit", format!("{key} {value} ({from})"))),
            None => built_in.push(format!("{key} {value}")),
        }
    }
    for (key, value) in spending(budget) {
        if let Some(from) = limits.from.get(key) {
            set.push(("limit", format!("{key} {value} ({from})")));
        }
    }
    if !built_in.is_empty() {
        set.push(("defaults", built_in.join(", ")));
    }
    set
}

fn values(limits: &LoopLimits) -> [(&'static str, String); 10] {
    [
        ("max_turns", limits.max_turns.to_string()),
        ("turn_cap", limits.turn_cap.to_string()),
        ("on_limit", word(&limits.on_limit)),
        ("on_deny", word(&limits.on_deny)),
        ("failing_steps", limits.failing_steps.to_string()),
        ("repeated_calls", limits.repeated_calls.to_string()),
        ("longest_cycle", limits.longest_cycle.to_string()),
        ("stutter_guard", limits.stutter_guard.to_string()),
        ("incomplete_intent_retries", limits.intent_retries.to_string()),
        ("max_messages", limits.max_messages.to_string()),
    ]
}

fn spending(budget: &Budget) -> [(&'static str, String); 4] {
    [
        ("budget.tokens", budget.tokens.to_string()),
        ("budget.usd", budget.usd.to_string()),
        (
            "budget.time",
            humantime::format_duration(std::time::Duration::from_millis(budget.time_ms)).to_string(),
        ),
        ("budget.steps", budget.steps.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explicit_limit_shows_its_source() {
        let mut limits = LoopLimits {
            turn_cap: 50,
            ..LoopLimits::default()
        };
        let budget = Budget {
            tokens: 1000,
            ..Budget::default()
        };
        limits
            .from
            .insert("turn_cap".into(), "/etc/agentd/config.toml:3".into());
        limits.from.insert("budget.tokens".into(), "the client".into());
        let lines = limit_lines(&limits, &budget);
        let set = [
            ("limit", "turn_cap 50 (/etc/agentd/config.toml:3)".to_owned()),
            ("limit", "budget.tokens 1000 (the client)".to_owned()),
        ];
        assert_eq!(lines.get(..2), Some(&set[..]));
        let (key, defaults) = lines.last().unwrap();
        assert!(
            *key == "defaults" && defaults.starts_with("max_turns -1, on_limit ask"),
            "{defaults}"
        );
    }
}
