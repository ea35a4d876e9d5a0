//! Budgets as flag values, and changes of them.

use super::duration;
use agentd_protocol::Budget;
use std::collections::BTreeSet;

/// `tokens=1M,usd=2.50,time=30m,steps=50`, or any subset.
pub(crate) fn budget(text: &str) -> Result<Budget, String> {
    budget_over(Budget::default(), text)
}

/// Like `budget`, but `none` removes a limit, and parts that are not named keep their value.
pub(crate) fn budget_over(mut budget: Budget, text: &str) -> Result<Budget, String> {
    let mut seen = BTreeSet::new();
    for part in text.split(',') {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("{part:?}: expected KEY=VALUE, such as usd=2.50"))?;
        if !seen.insert(key.trim()) {
            return Err(format!("{text:?}: {} occurs twice; give it once", key.trim()));
        }
        let lifted = value.trim() == "none";
        match key.trim() {
            "tokens" if lifted => budget.tokens = 0,
            "steps" if lifted => budget.steps = 0,
            "usd" if lifted => budget.usd = 0.0,
            "time" if lifted => budget.time_ms = 0,
            "tokens" => budget.tokens = count(value)?,
            "steps" => budget.steps = count(value)?,
            "usd" => budget.usd = dollars(value)?,
            "time" => budget.time_ms = u64::try_from(duration(value)?.as_millis()).unwrap_or(u64::MAX),
            other => {
                return Err(format!(
                    "unknown key {other:?}; expected tokens, usd, time or steps"
                ));
            }
        }
    }
    if text.split(',').any(is_zero) {
        return Err(format!(
            "{text:?}: 0 is not a valid limit; omit the key, or use none"
        ));
    }
    Ok(budget)
}

/// Whether it is `KEY=0` in any spelling.
fn is_zero(part: &str) -> bool {
    let value = part.split_once('=').map_or("", |(_, value)| value);
    let mut digits = value.chars().filter(char::is_ascii_digit).peekable();
    digits.peek().is_some() && digits.all(|digit| digit == '0')
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim().trim_start_matches('$').parse::<f64>() {
        Ok(usd) if usd.is_finite() && usd >= 0.0 => Ok(usd),
        Ok(_) | Err(_) => Err(format!("{text:?} is not an amount of dollars such as 2.50")),
    }
}

/// A count with an optional k or M.
fn count(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (text.get(..at).unwrap_or_default(), 1_000),
        Some((at, 'm' | 'M')) => (text.get(..at).unwrap_or_default(), 1_000_000),
        Some(_) | None => (text, 1),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(factor))
        .ok_or_else(|| format!("{text:?} is not a count such as 500, 200k or 1M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_can_have_any_of_its_parts() {
        let all = Budget {
            tokens: 1_000_000,
            usd: 2.5,
            time_ms: 1_800_000,
            steps: 50,
        };
        assert_eq!(budget("tokens=1M,usd=2.50,time=30m,steps=50"), Ok(all));
        for zero in ["steps=0", "usd=0.00", "tokens=1M,time=0s"] {
            assert!(
                budget(zero).unwrap_err().contains("0 is not a valid limit"),
                "{zero}"
            );
        }
        assert_eq!(
            budget_over(all, "tokens=2M,usd=none"),
            Ok(Budget {
                tokens: 2_000_000,
                usd: 0.0,
                ..all
            })
        );
        assert_eq!(
            budget("usd=$3"),
            Ok(Budget {
                usd: 3.0,
                ..Budget::default()
            })
        );
        assert_eq!(
            budget("tokens=200k"),
            Ok(Budget {
                tokens: 200_000,
                ..Budget::default()
            })
        );
    }

    #[test]
    fn an_invalid_budget_names_the_expected_form() {
        assert_eq!(
            budget("2").unwrap_err(),
            "\"2\": expected KEY=VALUE, such as usd=2.50"
        );
        assert_eq!(
            budget("eur=2").unwrap_err(),
            "unknown key \"eur\"; expected tokens, usd, time or steps"
        );
        assert_eq!(
            budget("usd=-1").unwrap_err(),
            "\"-1\" is not an amount of dollars such as 2.50"
        );
        assert_eq!(
            budget("tokens=99999999999999999M").unwrap_err(),
            "\"99999999999999999M\" is not a count such as 500, 200k or 1M"
        );
        assert!(budget("time=soon").is_err());
        assert_eq!(
            budget("usd=1, usd=2").unwrap_err(),
            "\"usd=1, usd=2\": usd occurs twice; give it once"
        );
    }
}
