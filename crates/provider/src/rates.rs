//! Parses the rate limits in a server's headers.

use crate::retry_after::{duration_ms, header, server_now};
use agentd_protocol::Timestamp;
use reqwest::header::HeaderMap;

/// One limit, as the server counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauge {
    /// The whole limit.
    pub limit: Option<u64>,
    /// The remainder.
    pub remaining: Option<u64>,
    /// Milliseconds until it is reset.
    pub reset_ms: Option<u64>,
}

/// All limits in one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Requests.
    pub requests: Gauge,
    /// Input tokens, or input and output where the server counts them together.
    pub input_tokens: Gauge,
    /// Output tokens.
    pub output_tokens: Gauge,
}

impl Rates {
    /// Parses the headers of an answer. Timestamps are relative to the server's own clock, which the answer carries, so
    /// the local clock may be wrong; without a server clock, a timestamp is ignored.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let now = server_now(headers);
        let anthropic =
            |what: &str| Gauge::read(headers, |part| format!("anthropic-ratelimit-{what}-{part}"), now);
        let others = |what: &str| Gauge::read(headers, |part| format!("x-ratelimit-{part}{what}"), now);
        Self {
            requests: anthropic("requests").or(|| others("-requests")).or(|| others("")),
            input_tokens: anthropic("input-tokens")
                .or(|| anthropic("tokens"))
                .or(|| others("-tokens"))
                .or(|| others("-tokens-minute")),
            output_tokens: anthropic("output-tokens"),
        }
    }
}

impl Gauge {
    fn read(headers: &HeaderMap, name: impl Fn(&str) -> String, now: Option<Timestamp>) -> Self {
        let number = |part: &str| header(headers, &name(part)).and_then(whole);
        Self {
            limit: number("limit"),
            remaining: number("remaining"),
            reset_ms: header(headers, &name("reset")).and_then(|text| reset_ms(text, now)),
        }
    }

    /// This gauge, or the other one if this one is entirely unknown.
    fn or(self, other: impl FnOnce() -> Self) -> Self {
        if self == Self::default() { other() } else { self }
    }
}

/// Parses a count. Some servers write a fraction, and some a negative remainder.
fn whole(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| {
        let count = text.parse::<f64>().ok().filter(|count| count.is_finite())?;
        // Such a count is an integer apart from rounding.
        format!("{:.0}", count.max(0.0).floor()).parse().ok()
    })
}

/// From here on a bare number is a timestamp in seconds, and from the second constant on in milliseconds.
const EPOCH_SECONDS: f64 = 1e9;
const EPOCH_MILLIS: f64 = 1e11;

/// A duration (`6m0s`), a number of seconds, or a timestamp (RFC 3339, or since the epoch).
fn reset_ms(text: &str, now: Option<Timestamp>) -> Option<u64> {
    let until = |moment: Timestamp| now.map(|now| moment.since_ms(now));
    if let Ok(moment) = text.parse::<Timestamp>() {
        return until(moment);
    }
    match text.parse::<f64>() {
        Ok(number) if number < EPOCH_SECONDS => duration_ms(&format!("{text}s")),
        Ok(number) if number < EPOCH_MILLIS => until(Timestamp(whole(text)?.saturating_mul(1_000))),
        Ok(_) => until(Timestamp(whole(text)?)),
        Err(_) => duration_ms(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: (&str, &str) = ("date", "Fri, 20 Nov 2026 09:00:00 GMT");

    fn check(headers: &[(&'static str, &'static str)], expected: Rates) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        assert_eq!(Rates::of(&map), expected, "{headers:?}");
    }

    fn gauge(limit: u64, remaining: u64, reset_ms: u64) -> Gauge {
        Gauge {
            limit: Some(limit),
            remaining: Some(remaining),
            reset_ms: Some(reset_ms),
        }
    }

    #[test]
    fn anthropics_limits_are_moments_read_against_its_own_clock() {
        check(
            &[
                DATE,
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "49"),
                ("anthropic-ratelimit-requests-reset", "2026-11-20T09:00:01Z"),
                ("anthropic-ratelimit-tokens-limit", "1"),
                ("anthropic-ratelimit-input-tokens-limit", "40000"),
                ("anthropic-ratelimit-input-tokens-remaining", "39000"),
                ("anthropic-ratelimit-input-tokens-reset", "2026-11-20T09:01:00Z"),
                ("anthropic-ratelimit-output-tokens-limit", "8000"),
                ("anthropic-ratelimit-output-tokens-remaining", "0"),
                ("anthropic-ratelimit-output-tokens-reset", "2026-11-20T08:59:00Z"),
            ],
            Rates {
                requests: gauge(50, 49, 1_000),
                input_tokens: gauge(40_000, 39_000, 60_000),
                output_tokens: gauge(8_000, 0, 0),
            },
        );
        check(
            &[
                DATE,
                ("anthropic-ratelimit-tokens-limit", "9"),
                ("anthropic-ratelimit-tokens-remaining", "8"),
                ("anthropic-ratelimit-tokens-reset", "2026-11-20T09:00:07Z"),
            ],
            Rates {
                input_tokens: gauge(9, 8, 7_000),
                ..Rates::default()
            },
        );
    }

    #[test]
    fn chat_servers_limits_are_durations() {
        check(
            &[
                ("x-ratelimit-limit-requests", "14400"),
                ("x-ratelimit-remaining-requests", "14370"),
                ("x-ratelimit-reset-requests", "2m59.56s"),
                ("x-ratelimit-limit-tokens", "18000"),
                ("x-ratelimit-remaining-tokens", "17997"),
                ("x-ratelimit-reset-tokens", "17ms"),
            ],
            Rates {
                requests: gauge(14_400, 14_370, 179_560),
                input_tokens: gauge(18_000, 17_997, 17),
                output_tokens: Gauge::default(),
            },
        );
        check(
            &[
                ("x-ratelimit-limit-tokens-minute", "60000"),
                ("x-ratelimit-remaining-tokens-minute", "-5"),
                ("x-ratelimit-reset-tokens-minute", "11.5"),
            ],
            Rates {
                input_tokens: gauge(60_000, 0, 11_500),
                ..Rates::default()
            },
        );
    }

    #[test]
    fn a_bare_limit_counts_requests_and_may_end_at_a_moment_from_the_epoch() {
        let of = |reset: &'static str| {
            let limits = [("x-ratelimit-limit", "20"), ("x-ratelimit-remaining", "0")];
            [DATE, limits[0], limits[1], ("x-ratelimit-reset", reset)]
        };
        let expected = Rates {
            requests: gauge(20, 0, 30_000),
            ..Rates::default()
        };
        check(&of("1795165230000"), expected);
        check(&of("1795165230"), expected);
        check(&of("30"), expected);
    }

    #[test]
    fn what_makes_no_sense_or_has_no_clock_is_left_out() {
        let limit = Gauge {
            limit: Some(20),
            ..Gauge::default()
        };
        let expected = Rates {
            requests: limit,
            ..Rates::default()
        };
        for reset in ["1795165230000", "2026-11-20T09:00:01Z", "soon", "-4", "NaN", ""] {
            check(
                &[("x-ratelimit-limit", "20"), ("x-ratelimit-reset", reset)],
                expected,
            );
        }
        check(&[("x-ratelimit-limit", "many")], Rates::default());
        check(&[], Rates::default());
    }
}
