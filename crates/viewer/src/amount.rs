//! Short forms of times, tokens, money and enum values.

use agentd_protocol::Timestamp;
use serde::Serialize;

/// How long ago, in one unit: `5s`, `3m`, `2h`, `4d`.
pub fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.since_ms(then) / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A duration: `12ms`, `1.2s`, `3m05s`, `2h10m`, `30d00h`.
pub fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1_000),
        3_600_000..172_800_000 => format!("{}h{:02}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
        _ => format!("{}d{:02}h", ms / 86_400_000, ms % 86_400_000 / 3_600_000),
    }
}

/// A duration in whole seconds: `7s`, `3m05s`, `2h10m`.
#[must_use]
pub fn clock(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// The time of day in UTC, as everywhere: `14:03:10Z`.
pub fn clock_time(at: Timestamp) -> String {
    let moment = at.to_string();
    format!("{}Z", moment.get(11..19).unwrap_or_default())
}

/// The day: `2026-11-23`.
pub fn day(at: Timestamp) -> String {
    at.to_string().get(..10).unwrap_or_default().to_owned()
}

/// A count of tokens: `950`, `1.2k`, `34k`, `5.6M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..10_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        10_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// A number with its noun: `1 step`, `2 steps`.
pub fn count(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// The amount without floating-point noise from summing: 0.014013, not 0.014013000000000001.
pub fn tidy_usd(usd: f64) -> f64 {
    const PLACES: f64 = 1e9;
    (usd * PLACES).round() / PLACES
}

/// An amount of US dollars: `$0`, `<$.0001`, `$0.0042`, `$1.25`.
pub fn dollars(usd: f64) -> String {
    if usd == 0.0 {
        "$0".to_owned()
    } else if usd < 0.0001 {
        "<$.0001".to_owned()
    } else if usd < 0.01 {
        format!("${usd:.4}")
    } else {
        format!("${usd:.2}")
    }
}

/// The serialized name of an enum value.
pub fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_too_small_for_its_places_is_not_shown_as_nothing() {
        let shown = [0.0, 0.000_05, 0.0001, 0.0042, 1.25].map(dollars);
        assert_eq!(shown, ["$0", "<$.0001", "$0.0001", "$0.0042", "$1.25"]);
    }
}
