//! What kind of failure an error is. Pure; the table in the tests is the specification.

use crate::error::ModelError;
use crate::fields::{error_kinds, error_message};
use crate::retry_after::retry_after_ms;
use agentd_protocol::FailureClass;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// How much of a body that is not JSON is quoted.
const QUOTED: usize = 300;

/// Classifies an answer whose status is not a success.
#[must_use]
pub fn classify(status: u16, headers: &HeaderMap, body: &[u8]) -> ModelError {
    let parsed = serde_json::from_slice::<Value>(body).unwrap_or_default();
    // Some servers wrap the error in an array of one.
    let parsed = match parsed {
        Value::Array(mut items) if items.len() == 1 => items.pop().unwrap_or_default(),
        other => other,
    };
    let said = error_message(&parsed).unwrap_or_else(|| quote(body));
    let wait = retry_after_ms(Some(status), headers, &parsed, &said);
    let mut class = class_of(Some(status), &error_kinds(&parsed), &said, wait.is_some());
    let told_to_retry = headers.get("x-should-retry").is_some_and(|value| value == "true");
    if class == FailureClass::InvalidRequest && told_to_retry {
        class = FailureClass::Transient;
    }
    let message = if said.is_empty() {
        format!("HTTP {status}")
    } else {
        format!("HTTP {status}: {said}")
    };
    ModelError {
        status: Some(status),
        retry_after_ms: wait,
        ..ModelError::new(class, message)
    }
}

/// Classifies an error that came inside a stream that had begun well.
#[must_use]
pub fn classify_stream_error(frame: &Value) -> ModelError {
    let said =
        error_message(frame).unwrap_or_else(|| "the provider ended the stream with an error".to_owned());
    let code = frame
        .pointer("/error/code")
        .or_else(|| frame.pointer("/error/status_code"));
    let status = code
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| *code >= 400);
    let wait = retry_after_ms(status, &HeaderMap::new(), frame, &said);
    let class = class_of(status, &error_kinds(frame), &said, wait.is_some());
    ModelError {
        status,
        retry_after_ms: wait,
        ..ModelError::new(class, said)
    }
}

fn quote(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..body.len().min(4 * QUOTED)).unwrap_or_default());
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(QUOTED)
        .collect()
}

/// Patterns of a conversation that is too long: all words of a row, in lower case.
const OVERFLOW: &[&[&str]] = &[
    &["prompt is too long"],
    &["input length and", "exceed context limit"],
    &["input is too long for requested model"],
    &["exceeds the context window"],
    &["context_length_exceeded"],
    &["context length exceeded"],
    &["maximum context length"],
    &["input token count", "exceeds the maximum"],
    &["maximum prompt length is"],
    &["reduce the length of the messages"],
    &["exceeds the available context size"],
    &["exceed_context_size_error"],
    &["too large to process", "physical batch size"],
    &["greater than the context length"],
    &["context window exceeds limit"],
    &["exceeded model token limit"],
    &["prompt token count", "exceeds the limit"],
    &["model_context_window_exceeded"],
    &["too many tokens"],
    &["token limit exceeded"],
    &["request_too_large"],
];

const QUOTA: &[&[&str]] = &[
    &["billing_error"],
    &["insufficient_quota"],
    &["usage_not_included"],
    &["exceeded your current quota"],
    &["credit balance is too low"],
    &["insufficient balance"],
    &["insufficient credits"],
    &["reached your specified", "usage limit"],
    &["spend limit"],
    &["spending limit"],
    &["perday"],
];

const RATE: &[&[&str]] = &[
    &["rate_limit"],
    &["rate limit"],
    &["resource_exhausted"],
    &["too_many_requests"],
    &["too many requests"],
];

const FILTER: &[&[&str]] = &[
    &["content_filter"],
    &["content_policy"],
    &["content management policy"],
    &["misalignment_policy"],
    &["bio_policy"],
    &["flagged", "moderation"],
];

const AUTH: &[&[&str]] = &[
    &["authentication_error"],
    &["permission_error"],
    &["invalid_api_key"],
    &["api_key_invalid"],
    &["incorrect api key"],
    &["invalid api key"],
    &["api key not valid"],
    &["unauthenticated"],
];

const OVERLOAD: &[&[&str]] = &[
    &["overloaded"],
    &["slow_down"],
    &["server_busy"],
    &["loading model"],
    &["insufficient_system_resource"],
];

const BROKEN: &[&[&str]] = &[
    &["api_error"],
    &["timeout_error"],
    &["server_error"],
    &["internal_error"],
    &["internal server error"],
];

const INVALID: &[&[&str]] = &[
    &["invalid_request"],
    &["not_found"],
    &["invalid_argument"],
    &["unsupported"],
];

fn class_of(status: Option<u16>, kinds: &str, said: &str, waits: bool) -> FailureClass {
    let text = format!("{kinds} {}", said.to_lowercase());
    let is = |patterns: &[&[&str]]| {
        patterns
            .iter()
            .any(|words| words.iter().all(|word| text.contains(word)))
    };
    // A monthly cap comes as a rate limit that names no wait.
    let spent = status == Some(429) && !waits && (text.contains("monthly") || text.contains("spend"));
    if status == Some(402) || spent || is(QUOTA) {
        FailureClass::QuotaExhausted
    } else if status == Some(429) || is(RATE) {
        FailureClass::RateLimited
    } else if is(FILTER) {
        FailureClass::ContentFilter
    } else if matches!(status, Some(401 | 403)) || is(AUTH) {
        FailureClass::Auth
    } else if status == Some(413) || is(OVERFLOW) {
        FailureClass::ContextOverflow
    } else if matches!(status, Some(503 | 529)) || is(OVERLOAD) {
        FailureClass::Overloaded
    } else {
        rest(status, is(BROKEN), is(INVALID))
    }
}

fn rest(status: Option<u16>, broken: bool, invalid: bool) -> FailureClass {
    match status {
        Some(408 | 409 | 425 | 500..) => FailureClass::Transient,
        Some(_) => FailureClass::InvalidRequest,
        // Inside a stream the status is gone, and the request was good enough to begin with.
        None if invalid && !broken => FailureClass::InvalidRequest,
        None => FailureClass::Transient,
    }
}

#[cfg(test)]
mod tests;
