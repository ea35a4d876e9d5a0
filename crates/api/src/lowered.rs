//! Says which limits of a new session are stricter than what was asked for.

use agentd_protocol::{Budget, CreateParams, LoopLimits};

/// Notices about limits that are lower than the requested ones, with the reason.
pub(crate) fn lowered(params: &CreateParams, limits: &LoopLimits, got: &Budget) -> Vec<String> {
    let asked = params.budget.unwrap_or_default();
    let from = |key: &str| match limits.from.get(key) {
        Some(from) => format!("{key}, set in {from}"),
        None => format!("{key}, a built-in default"),
    };
    let turns = params.max_turns.and_then(|turns| {
        let cap = u32::try_from(turns).is_ok_and(|turns| turns > limits.turn_cap);
        let key = if limits.max_turns == turns {
            cap.then_some("turn_cap")?
        } else {
            "max_turns"
        };
        let steps = limits.step_cap().map_or(0, i64::from);
        Some(format!(
            "a turn has at most {steps} steps, not {turns}: the limit is {}",
            from(key)
        ))
    });
    let part = |key: &str, asked: f64, got: f64| {
        let name = format!("budget.{key}");
        (asked > 0.0 && got < asked)
            .then(|| format!("{name} is {got}, not {asked}: the limit is {}", from(&name)))
    };
    #[expect(clippy::cast_precision_loss, reason = "shown to a person")]
    let budget = [
        part("tokens", asked.tokens as f64, got.tokens as f64),
        part("usd", asked.usd, got.usd),
        part("time", asked.time_ms as f64 / 1e3, got.time_ms as f64 / 1e3),
        part("steps", asked.steps as f64, got.steps as f64),
    ];
    turns.into_iter().chain(budget.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_steps_than_the_cap_are_mentioned() {
        let turns = |asked: i32| {
            let params = CreateParams {
                max_turns: Some(asked),
                ..CreateParams::default()
            };
            let limits = LoopLimits {
                max_turns: asked,
                ..LoopLimits::default()
            };
            lowered(&params, &limits, &Budget::default())
        };
        assert_eq!(
            turns(100_000),
            ["a turn has at most 100 steps, not 100000: the limit is turn_cap, a built-in default"]
        );
        for fine in [-1, 0, 1, 100] {
            assert_eq!(turns(fine), [""; 0], "{fine}");
        }
        assert_eq!(turns(101).len(), 1);
    }

    #[test]
    fn what_the_operator_holds_lower_is_mentioned_with_its_place() {
        let budget = |tokens, time_ms| Budget {
            tokens,
            usd: 2.0,
            time_ms,
            steps: 7,
        };
        let params = CreateParams {
            max_turns: Some(50),
            budget: Some(budget(500, 0)),
            ..CreateParams::default()
        };
        let from = ["max_turns", "budget.tokens"].map(|key| (key.to_owned(), "c.toml:2".to_owned()));
        let limits = LoopLimits {
            max_turns: 3,
            from: from.into(),
            ..LoopLimits::default()
        };
        let said = lowered(&params, &limits, &budget(100, 60_000));
        assert_eq!(
            said,
            [
                "a turn has at most 3 steps, not 50: the limit is max_turns, set in c.toml:2",
                "budget.tokens is 100, not 500: the limit is budget.tokens, set in c.toml:2"
            ]
        );
    }
}
