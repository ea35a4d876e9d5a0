//! How long a server asks to wait, in all the forms that servers have for it.

use reqwest::header::HeaderMap;
use serde_json::Value;

/// Longer wishes are cut to a week, so that arithmetic on them stays safe.
const LONGEST_MS: f64 = 7.0 * 24.0 * 3_600_000.0;

/// The wait in milliseconds: from the headers, else from the words of the body.
pub(crate) fn retry_after_ms(
    status: Option<u16>,
    headers: &HeaderMap,
    body: &Value,
    message: &str,
) -> Option<u64> {
    from_headers(headers)
        .or_else(|| from_details(body))
        .or_else(|| from_words(message))
        .or_else(|| (status == Some(429)).then(|| from_limits(headers)).flatten())
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::trim)
}

fn from_headers(headers: &HeaderMap) -> Option<u64> {
    let number = |name: &str| header(headers, name).and_then(|text| text.parse::<f64>().ok());
    let ms = number("retry-after-ms").or_else(|| number("retry-after").map(|seconds| seconds * 1_000.0));
    ms.and_then(whole_ms).or_else(|| from_date(headers))
}

/// A date is read against the server's own clock, which its answer carries, so ours may be wrong.
fn from_date(headers: &HeaderMap) -> Option<u64> {
    let until = httpdate::parse_http_date(header(headers, "retry-after")?).ok()?;
    let now = httpdate::parse_http_date(header(headers, "date")?).ok()?;
    let wait = until.duration_since(now).unwrap_or_default();
    whole_ms(wait.as_secs_f64() * 1_000.0)
}

/// Google's `RetryInfo`.
fn from_details(body: &Value) -> Option<u64> {
    let details = body.pointer("/error/details").and_then(Value::as_array)?;
    details
        .iter()
        .find_map(|detail| duration_ms(detail.get("retryDelay").and_then(Value::as_str)?))
}

fn from_words(message: &str) -> Option<u64> {
    let lower = message.to_lowercase();
    let rest = ["try again in ", "retry in ", "retry after "]
        .into_iter()
        .find_map(|words| lower.split_once(words).map(|(_, rest)| rest.to_owned()))?;
    let mut words = rest.split_whitespace();
    let first = words.next()?.trim_end_matches(['.', ',', ';', ')']);
    duration_ms(first).or_else(|| {
        // "20 seconds"
        let unit = words.next().unwrap_or_default();
        let scale = if unit.starts_with("ms") || unit.starts_with("milli") {
            1.0
        } else if unit.starts_with("min") {
            60_000.0
        } else {
            1_000.0
        };
        first
            .parse::<f64>()
            .ok()
            .and_then(|count| whole_ms(count * scale))
    })
}

/// The reset of a limit that is used up.
fn from_limits(headers: &HeaderMap) -> Option<u64> {
    let reset = |kind: &str| {
        let empty = header(headers, &format!("x-ratelimit-remaining-{kind}"))? == "0";
        empty
            .then(|| duration_ms(header(headers, &format!("x-ratelimit-reset-{kind}"))?))
            .flatten()
    };
    reset("requests").max(reset("tokens"))
}

/// A duration such as `1s`, `6m0s`, `17ms` or `1h2m3.5s`.
fn duration_ms(text: &str) -> Option<u64> {
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
}
