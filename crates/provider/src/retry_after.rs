//! Parses the wait that a server requests, in all the forms that servers use.

use crate::rates::Rates;
use agentd_protocol::Timestamp;
use reqwest::header::{DATE, HeaderMap, HeaderName};
use serde_json::Value;
use std::time::{Duration, UNIX_EPOCH};

/// Longer waits are capped at a week, so that arithmetic on them stays safe.
const LONGEST_MS: f64 = 7.0 * 24.0 * 3_600_000.0;
const LONGEST: u64 = 7 * 24 * 3_600_000;

/// The wait in milliseconds: from the headers, else from the body.
pub(crate) fn retry_after_ms(
    status: Option<u16>,
    headers: &HeaderMap,
    body: &Value,
    message: &str,
) -> Option<u64> {
    let limits = || {
        let behind = || headers_behind(headers, body).as_ref().and_then(from_limits);
        from_limits(headers).or_else(behind)
    };
    from_headers(headers)
        .or_else(|| from_details(body))
        .or_else(|| from_fields(body, headers))
        .or_else(|| from_words(message))
        .or_else(|| (status == Some(429)).then(limits).flatten())
}

pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::trim)
}

fn from_headers(headers: &HeaderMap) -> Option<u64> {
    let number = |name: &str| header(headers, name).and_then(|text| text.parse::<f64>().ok());
    let seconds = |seconds| seconds_or_moment(seconds, headers);
    number("retry-after-ms")
        .and_then(whole_ms)
        .or_else(|| number("retry-after").and_then(seconds))
        .or_else(|| from_date(headers))
        .or_else(|| duration_ms(header(headers, "retry-after")?))
}

/// The smallest number of seconds that is a moment since 1970 and not a wait; the same in milliseconds.
const MOMENT: f64 = 1e9;
const MOMENT_MS: f64 = 1e12;
/// In any of these units, this is neither a wait nor a moment of our time.
const ABSURD: f64 = 1e13;

/// A number of seconds; some servers send the moment of the end instead, in seconds or milliseconds since 1970. It is
/// compared with the server's own clock; without that, it says nothing.
fn seconds_or_moment(number: f64, headers: &HeaderMap) -> Option<u64> {
    if !(MOMENT..ABSURD).contains(&number) {
        return whole_ms(number * 1_000.0);
    }
    let until = if number < MOMENT_MS {
        number * 1_000.0
    } else {
        number
    };
    let now = Duration::from_millis(server_now(headers)?.0).as_secs_f64() * 1_000.0;
    whole_ms((until - now).max(0.0))
}

/// A date is compared with the server's own clock, which its answer carries, so the local clock may be wrong.
fn from_date(headers: &HeaderMap) -> Option<u64> {
    let until = moment(header(headers, "retry-after")?)?;
    Some(until.since_ms(server_now(headers)?).min(LONGEST))
}

/// The server's clock at the time of its answer.
pub(crate) fn server_now(headers: &HeaderMap) -> Option<Timestamp> {
    moment(header(headers, "date")?)
}

fn moment(text: &str) -> Option<Timestamp> {
    let time = httpdate::parse_http_date(text).ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok().map(Timestamp)
}

/// Google's `RetryInfo`.
fn from_details(body: &Value) -> Option<u64> {
    let details = body.pointer("/error/details").and_then(Value::as_array)?;
    details
        .iter()
        .find_map(|detail| duration_ms(detail.get("retryDelay").and_then(Value::as_str)?))
}

/// A number of seconds in a field.
fn from_fields(body: &Value, headers: &HeaderMap) -> Option<u64> {
    let seconds = [
        "/error/retry_after",
        "/retry_after",
        "/error/metadata/retry_after_seconds",
    ]
    .iter()
    .find_map(|field| body.pointer(field)?.as_f64())?;
    seconds_or_moment(seconds, headers)
}

/// The phrases that precede a wait in an error message.
const BEFORE: &[&str] = &[
    "again in ",
    "retry in ",
    "retry after ",
    "again after ",
    "wait for ",
    "please wait ",
];

fn from_words(message: &str) -> Option<u64> {
    let lower = message.to_lowercase();
    BEFORE.iter().find_map(|words| spoken(lower.split_once(words)?.1))
}

/// Parses "1m2.5s", "20 seconds", "2 hours".
fn spoken(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let first = words.next()?.trim_end_matches(['.', ',', ';', ')']);
    duration_ms(first).or_else(|| {
        let unit = words.next().unwrap_or_default();
        let scale = match unit {
            _ if unit.starts_with("ms") || unit.starts_with("milli") => 1.0,
            _ if unit.starts_with("min") => 60_000.0,
            _ if unit.starts_with("hour") => 3_600_000.0,
            _ if unit.starts_with("day") => 86_400_000.0,
            _ => 1_000.0,
        };
        let count = first.parse::<f64>().ok()?;
        whole_ms(count * scale)
    })
}

/// The reset time of an exhausted limit.
fn from_limits(headers: &HeaderMap) -> Option<u64> {
    let rates = Rates::of(headers);
    [rates.requests, rates.input_tokens, rates.output_tokens]
        .into_iter()
        .filter(|gauge| gauge.remaining == Some(0))
        .filter_map(|gauge| gauge.reset_ms)
        .max()
        .map(|wait| wait.min(LONGEST))
}

/// The headers of the upstream server: OpenRouter puts them into the body.
fn headers_behind(headers: &HeaderMap, body: &Value) -> Option<HeaderMap> {
    let behind = body.pointer("/error/metadata/headers")?.as_object()?;
    let mut all = HeaderMap::new();
    all.extend(headers.get(DATE).map(|date| (DATE, date.clone())));
    for (name, value) in behind {
        let name = HeaderName::from_bytes(name.as_bytes()).ok();
        let value = value.as_str().and_then(|value| value.parse().ok());
        all.extend(name.zip(value));
    }
    Some(all)
}

/// A duration such as `1s`, `6m0s`, `17ms` or `1h2m3.5s`.
pub(crate) fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (count, after) = rest.split_at(digits);
        let letters = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, tail) = after.split_at(letters);
        let scale = match unit {
            "ms" => 1.0,
            "s" => 1_000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            "d" => 86_400_000.0,
            _ => return None,
        };
        total += count.parse::<f64>().ok()? * scale;
        rest = tail;
    }
    whole_ms(total)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked: finite, not negative, below a week"
)]
fn whole_ms(ms: f64) -> Option<u64> {
    (ms.is_finite() && ms >= 0.0).then(|| ms.min(LONGEST_MS).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(headers: &[(&'static str, &'static str)], body: &Value, message: &str, expected: Option<u64>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        assert_eq!(
            retry_after_ms(Some(429), &map, body, message),
            expected,
            "{headers:?} {body} {message}"
        );
    }

    #[test]
    fn a_moment_instead_of_a_wait_is_compared_with_the_clock_of_the_server() {
        let none = Value::Null;
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let check = |headers: &[(&'static str, &'static str)], expected| check(headers, &none, "", expected);
        // That date is 784111777; later servers send larger numbers.
        let late = ("date", "Sat, 28 Nov 2026 20:00:00 GMT");
        check(&[late, ("retry-after", "1795896030")], Some(30_000));
        check(&[late, ("retry-after", "1795896030.5")], Some(30_500));
        check(&[late, ("retry-after", "1795896030000")], Some(30_000));
        check(&[late, ("retry-after", "1795895990")], Some(0));
        check(&[late, ("retry-after", "99999999999999999999")], Some(LONGEST));
        check(&[("retry-after", "1795896030")], None);
        check(&[date, ("retry-after", "999999999")], Some(LONGEST));
        check(&[("retry-after", "1.5s")], Some(1_500));
        check(&[("retry-after", "-5")], None);
        check(&[("retry-after", "NaN")], None);
    }

    #[test]
    fn every_form_of_a_wait_is_understood() {
        let none = Value::Null;
        check(&[("retry-after", "2")], &none, "", Some(2_000));
        check(&[("retry-after", "0.25")], &none, "", Some(250));
        check(
            &[("retry-after-ms", "1500.5"), ("retry-after", "9")],
            &none,
            "",
            Some(1_501),
        );
        let date = ("date", "Fri, 20 Nov 2026 09:00:00 GMT");
        check(
            &[("retry-after", "Fri, 20 Nov 2026 09:00:30 GMT"), date],
            &none,
            "",
            Some(30_000),
        );
        check(
            &[("retry-after", "Fri, 20 Nov 2026 08:00:00 GMT"), date],
            &none,
            "",
            Some(0),
        );
        check(&[("retry-after", "-1")], &none, "", None);
        check(&[("retry-after", "soon")], &none, "", None);
        check(&[("retry-after", "1e300")], &none, "", Some(604_800_000));
        check(
            &[],
            &none,
            "Rate limit reached. Please try again in 1m2.5s. Visit",
            Some(62_500),
        );
        check(&[], &none, "please try again in 20 seconds", Some(20_000));
        check(&[], &none, "Retry after 500 ms", Some(500));
        check(
            &[],
            &json!({"error": {"details": [{"x": 1}, {"retryDelay": "34s"}]}}),
            "",
            Some(34_000),
        );
        let limits = [
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "6m0s"),
        ];
        check(&limits, &none, "", Some(360_000));
        check(
            &[
                ("x-ratelimit-remaining-requests", "5"),
                ("x-ratelimit-reset-requests", "1s"),
            ],
            &none,
            "",
            None,
        );
        check(&[], &none, "no wait", None);
    }

    #[test]
    fn a_wait_is_understood_in_words_and_fields() {
        let none = Value::Null;
        check(
            &[],
            &none,
            "Please wait before trying again in 2 hours.",
            Some(7_200_000),
        );
        check(&[], &none, "Please wait 3 minutes", Some(180_000));
        check(&[], &none, "Please wait before trying again.", None);
        check(&[], &json!({"retry_after": 1.5}), "", Some(1_500));
        check(&[], &json!({"error": {"retry_after": 2}}), "", Some(2_000));
    }

    #[test]
    fn the_reset_of_a_limit_that_is_used_up_is_a_wait() {
        let date = ("date", "Fri, 20 Nov 2026 09:00:00 GMT");
        check(
            &[
                date,
                ("anthropic-ratelimit-input-tokens-remaining", "0"),
                ("anthropic-ratelimit-input-tokens-reset", "2026-11-20T09:00:20Z"),
                ("anthropic-ratelimit-requests-remaining", "7"),
                ("anthropic-ratelimit-requests-reset", "2026-11-20T09:09:00Z"),
            ],
            &Value::Null,
            "",
            Some(20_000),
        );
        let behind = json!({"error": {"metadata": {"headers": {
            "X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1795165230000",
        }}}});
        check(&[date], &behind, "", Some(30_000));
        check(&[], &behind, "", None);
    }
}
