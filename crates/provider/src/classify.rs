//! Classifies errors: the kind of failure, and the advice in it. Pure; the table in the tests is the specification.

mod advice;
mod item;
mod patterns;

use crate::error::ModelError;
use crate::fields::{error_kinds, error_message};
use crate::retry_after::retry_after_ms;
use advice::advice;
pub(crate) use advice::of_call;
use agentd_protocol::FailureClass;
use item::is_about_an_image;
use patterns::{
    AUTH, BROKEN, FILTER, INVALID, LARGER_THAN_RATE, MISCALLED, NEVER, OVERFLOW, OVERLOAD, QUOTA,
    QUOTA_WITHOUT_WAIT, RATE, has,
};
use reqwest::header::HeaderMap;
use serde_json::Value;

/// How much of a non-JSON body an error quotes.
const QUOTED: usize = 300;

/// Classifies a response whose status is not a success.
#[must_use]
pub fn classify(status: u16, headers: &HeaderMap, body: &[u8]) -> ModelError {
    let parsed = serde_json::from_slice::<Value>(body).unwrap_or_default();
    // Some servers wrap the error in an array of one.
    let parsed = match parsed {
        Value::Array(mut items) if items.len() == 1 => items.pop().unwrap_or_default(),
        other => other,
    };
    let said = said(&parsed).unwrap_or_else(|| {
        quote(&String::from_utf8_lossy(
            body.get(..body.len().min(4 * QUOTED)).unwrap_or_default(),
        ))
    });
    let signs = Signs {
        status: Some(status),
        wait: retry_after_ms(Some(status), headers, &parsed, &said),
        retry: headers
            .get("x-should-retry")
            .and_then(|value| value.to_str().ok()?.parse().ok()),
        silent: body.iter().all(u8::is_ascii_whitespace),
    };
    let message = if said.is_empty() {
        format!("HTTP {status}")
    } else {
        format!("HTTP {status}: {said}")
    };
    signs.error(&parsed, &said, message)
}

/// Classifies an error event in a stream that had started normally.
#[must_use]
pub fn classify_stream_error(frame: &Value) -> ModelError {
    let said = said(frame).unwrap_or_else(|| "the provider ended the stream with an error".to_owned());
    let code = frame
        .pointer("/error/code")
        .or_else(|| frame.pointer("/error/status_code"));
    let status = code
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| *code >= 400);
    let signs = Signs {
        status,
        wait: retry_after_ms(status, &HeaderMap::new(), frame, &said),
        retry: None,
        silent: false,
    };
    signs.error(frame, &said, said.clone())
}

/// The message of an error, including that of the upstream server behind a gateway.
fn said(body: &Value) -> Option<String> {
    let message = error_message(body)?;
    let behind = body.pointer("/error/metadata/raw").map(|raw| match raw {
        Value::String(text) => quote(text),
        other => quote(&other.to_string()),
    });
    Some(match behind {
        Some(behind) if !behind.is_empty() => format!("{message}: {behind}"),
        Some(_) | None => message,
    })
}

fn quote(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(QUOTED).collect()
}

/// All machine-readable names that an error gives its failure.
fn names(body: &Value) -> String {
    let mut names = vec![error_kinds(body)];
    let mut add = |found: Option<&Value>| names.extend(found.and_then(Value::as_str).map(str::to_lowercase));
    add(body.pointer("/error/param"));
    add(body.pointer("/error/innererror/code"));
    let details = body.pointer("/error/details").and_then(Value::as_array);
    for detail in details.into_iter().flatten() {
        add(detail.get("reason"));
        let violations = detail.get("violations").and_then(Value::as_array);
        for violation in violations.into_iter().flatten() {
            add(violation.get("quotaId"));
        }
    }
    names.join(" ")
}

/// The facts about a failure apart from its message.
struct Signs {
    status: Option<u16>,
    /// The requested wait.
    wait: Option<u64>,
    /// Whether the server recommends another attempt.
    retry: Option<bool>,
    /// The error has no message.
    silent: bool,
}

impl Signs {
    fn error(&self, body: &Value, said: &str, message: String) -> ModelError {
        let text = format!("{} {}", names(body), said.to_lowercase());
        let class = match (self.class(&text), self.retry) {
            (FailureClass::InvalidRequest, Some(true)) => FailureClass::Transient,
            // The server names no wait because waiting does not help.
            (FailureClass::RateLimited, Some(false)) if self.wait.is_none() => FailureClass::QuotaExhausted,
            (class, _) => class,
        };
        ModelError {
            status: self.status,
            retry_after_ms: self.wait,
            advice: advice(class, body, &text, said),
            ..ModelError::new(class, message)
        }
    }

    fn class(&self, text: &str) -> FailureClass {
        let status = self.status;
        let is = |rows| has(text, rows);
        // A monthly cap is reported as a rate limit without a wait.
        let spent = status == Some(429) && self.wait.is_none() && is(QUOTA_WITHOUT_WAIT);
        // Cerebras answers a conversation that is too long with an error without a message.
        let mute = self.silent && self.retry.is_none() && status == Some(400);
        // Checked first: the message may quote the model, whose output can contain anything.
        if is(MISCALLED) {
            FailureClass::InvalidRequest
        } else if status == Some(402) || spent || is(QUOTA) {
            FailureClass::QuotaExhausted
        } else if is(LARGER_THAN_RATE) {
            FailureClass::ContextOverflow
        } else if status == Some(429) || is(RATE) {
            FailureClass::RateLimited
        } else if is(FILTER) {
            FailureClass::ContentFilter
        } else if matches!(status, Some(401 | 403)) || is(AUTH) {
            FailureClass::Auth
        } else if status == Some(413) && is_about_an_image(text) {
            FailureClass::InvalidRequest
        } else if mute || status == Some(413) || is(OVERFLOW) {
            FailureClass::ContextOverflow
        } else if is(NEVER) {
            FailureClass::InvalidRequest
        } else if matches!(status, Some(498 | 503 | 529)) || is(OVERLOAD) {
            FailureClass::Overloaded
        } else {
            rest(status, is(BROKEN), is(INVALID))
        }
    }
}

fn rest(status: Option<u16>, broken: bool, invalid: bool) -> FailureClass {
    match status {
        Some(408 | 409 | 425 | 500..) => FailureClass::Transient,
        Some(_) => FailureClass::InvalidRequest,
        // Errors inside a stream have no status, and the server had already accepted the request.
        None if invalid && !broken => FailureClass::InvalidRequest,
        None => FailureClass::Transient,
    }
}

#[cfg(test)]
mod tests;
