//! Errors on the wire: a fault as problem JSON (RFC 9457).

use agentd_protocol::{Fault, FaultClass};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// The status of each fault class.
pub(crate) const fn status_of(class: FaultClass) -> StatusCode {
    match class {
        FaultClass::Invalid => StatusCode::BAD_REQUEST,
        FaultClass::NotFound => StatusCode::NOT_FOUND,
        FaultClass::Denied => StatusCode::FORBIDDEN,
        FaultClass::Conflict => StatusCode::CONFLICT,
        FaultClass::Busy => StatusCode::TOO_MANY_REQUESTS,
        FaultClass::Limit => StatusCode::UNPROCESSABLE_ENTITY,
        FaultClass::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        FaultClass::Version => StatusCode::UPGRADE_REQUIRED,
        FaultClass::Timeout => StatusCode::GATEWAY_TIMEOUT,
        FaultClass::Storage => StatusCode::INSUFFICIENT_STORAGE,
        FaultClass::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// An error answer.
#[derive(Debug)]
pub(crate) struct Problem {
    fault: Fault,
    status: StatusCode,
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        // HTTP has a status of its own for keys (draft-ietf-httpapi-idempotency-key-header) and conditions (RFC 9110).
        let status = match fault.code.as_str() {
            "settings_changed" => StatusCode::PRECONDITION_FAILED,
            "key_reused" => StatusCode::UNPROCESSABLE_ENTITY,
            "key_busy" => StatusCode::CONFLICT,
            _ => status_of(fault.class),
        };
        Self { fault, status }
    }
}

impl Problem {
    /// A fault of HTTP itself, which has a more exact status than its class.
    pub(crate) const fn with(status: StatusCode, fault: Fault) -> Self {
        Self { fault, status }
    }

    /// A request without a valid token.
    pub(crate) const fn unauthorized(fault: Fault) -> Self {
        Self::with(StatusCode::UNAUTHORIZED, fault)
    }
}

/// The body of an error answer: a problem as in RFC 9457.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Body<'a> {
    /// `urn:agentd:fault:` and the code.
    r#type: String,
    /// The status as text.
    title: &'a str,
    /// The status.
    status: u16,
    /// What failed, and on what object.
    detail: &'a str,
    /// The class, which determines the status.
    class: FaultClass,
    /// A stable code for programs.
    code: &'a str,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    /// The parameter that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { fault, status } = self;
        let body = Body {
            r#type: format!("urn:agentd:fault:{}", fault.code),
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: &fault.message,
            class: fault.class,
            code: &fault.code,
            hint: fault.hint.as_deref(),
            field: field(&fault),
        };
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The parameter that a fault is about, if its message begins with one: `params: content[0].text: expected a string`.
fn field(fault: &Fault) -> Option<&str> {
    if fault.code != "bad_params" {
        return None;
    }
    let (field, _) = fault.message.strip_prefix("params: ")?.split_once(':')?;
    let is_path = |c: char| c.is_ascii_alphanumeric() || "_.[]-".contains(c);
    field.chars().all(is_path).then_some(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_named_if_the_fault_names_one() {
        let fault = |message: &str| Fault::invalid("bad_params", message);
        let wrong = fault("params: content[0].text: invalid type: integer `3`, expected a string");
        assert_eq!(field(&wrong), Some("content[0].text"));
        assert_eq!(
            field(&fault("params: expected a map with named keys, not null")),
            None
        );
        assert_eq!(field(&fault("params: unknown field `x`, expected: a, b")), None);
    }
}
