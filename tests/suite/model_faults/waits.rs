//! Refusals that name a wait, in every form that servers use.

use super::{Dialect, PATIENT, heard, in_each_dialect};
use agentd_protocol::FailureClass;
use agentd_tests::fault_server::http;

/// Every dialect must read this wait from an answer with status 429.
async fn waits(headers: &[(&str, &str)], body: &str, wait_ms: Option<u64>) {
    in_each_dialect(async |dialect| {
        let heard = heard(dialect, vec![http(429, headers, body)], PATIENT).await;
        heard.is(FailureClass::RateLimited, (dialect, headers, body));
        let error = heard.answer.unwrap_err();
        assert_eq!(
            (error.status, error.retry_after_ms),
            (Some(429), wait_ms),
            "{dialect:?} {headers:?} {body}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_rate_limit_that_names_no_wait_names_none() {
    waits(&[], "", None).await;
    waits(&[], "slow down", None).await;
    waits(&[("retry-after", "soon")], "", None).await;
    waits(&[("retry-after", "-5")], "", None).await;
}

#[tokio::test]
async fn retry_after_in_seconds_is_the_wait() {
    waits(&[("retry-after", "7")], "", Some(7_000)).await;
    waits(&[("Retry-After", " 0.5 ")], "", Some(500)).await;
    waits(&[("retry-after", "0")], "", Some(0)).await;
}

#[tokio::test]
async fn retry_after_in_milliseconds_comes_before_seconds() {
    waits(
        &[("retry-after-ms", "1500"), ("retry-after", "9")],
        "",
        Some(1_500),
    )
    .await;
    waits(&[("retry-after-ms", "12.5")], "", Some(13)).await;
}

#[tokio::test]
async fn retry_after_as_a_date_is_read_by_the_clock_of_the_server() {
    let date = ("date", "Fri, 20 Nov 2026 09:00:00 GMT");
    waits(
        &[date, ("retry-after", "Fri, 20 Nov 2026 09:01:30 GMT")],
        "",
        Some(90_000),
    )
    .await;
    waits(
        &[date, ("retry-after", "Fri, 20 Nov 2026 08:59:00 GMT")],
        "",
        Some(0),
    )
    .await;
}

#[tokio::test]
async fn a_wait_in_the_words_of_the_body_is_the_wait() {
    let body = r#"{"error":{"message":"Rate limit reached for requests. Please try again in 1.3s.","type":"requests","code":"rate_limit_exceeded"}}"#;
    waits(&[], body, Some(1_300)).await;
    let body = r#"{"error":{"message":"Rate limit reached. Please try again in 250ms."}}"#;
    waits(&[], body, Some(250)).await;
    waits(
        &[],
        r#"{"error":"Rate limit: retry after 20 seconds"}"#,
        Some(20_000),
    )
    .await;
}

#[tokio::test]
async fn a_wait_in_the_details_of_the_body_is_the_wait() {
    let body = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded for requests per minute",
        "details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}"#;
    waits(&[], body, Some(34_500)).await;
}

#[tokio::test]
async fn the_reset_of_an_empty_limit_is_the_wait() {
    let limits = [
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "1m2s"),
    ];
    waits(&limits, "", Some(62_000)).await;
}

#[tokio::test]
async fn a_wait_beyond_all_measure_is_cut_to_a_week() {
    waits(&[("retry-after", "1e300")], "", Some(604_800_000)).await;
}

#[tokio::test]
async fn a_wait_that_comes_with_overload_is_passed_on() {
    in_each_dialect(async |dialect| {
        for status in [503, 529] {
            let acts = vec![http(status, &[("retry-after", "3")], "")];
            let heard = heard(dialect, acts, PATIENT).await;
            heard.is(FailureClass::Overloaded, (dialect, status));
            assert_eq!(
                heard.answer.unwrap_err().retry_after_ms,
                Some(3_000),
                "{dialect:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_limit_of_the_day_or_of_the_month_is_no_rate_limit() {
    let per_day = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded",
        "details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}}"#;
    let cases = [
        (Dialect::Gemini, per_day),
        (
            Dialect::OpenaiChat,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        ),
        (
            Dialect::OpenaiResponses,
            r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"You have reached your monthly spend limit"}}"#,
        ),
    ];
    for (dialect, body) in cases {
        let heard = heard(dialect, vec![http(429, &[], body)], PATIENT).await;
        heard.is(FailureClass::QuotaExhausted, (dialect, body));
    }
}
