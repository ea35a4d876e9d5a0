use super::*;
use FailureClass::{
    Auth, ContentFilter, ContextOverflow, InvalidRequest, Overloaded, QuotaExhausted, RateLimited, Transient,
};
use serde_json::json;

fn check(status: u16, body: &str, expected: FailureClass) {
    let error = classify(status, &HeaderMap::new(), body.as_bytes());
    assert_eq!(
        (error.class, error.status),
        (expected, Some(status)),
        "{status} {body}"
    );
}

#[test]
fn anthropics_errors_have_their_classes() {
    let body = |kind: &str, message: &str| {
        json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"}).to_string()
    };
    check(
        400,
        &body("invalid_request_error", "messages: bad"),
        InvalidRequest,
    );
    check(
        400,
        &body(
            "invalid_request_error",
            "prompt is too long: 213462 tokens > 200000 maximum",
        ),
        ContextOverflow,
    );
    check(
        400,
        &body(
            "invalid_request_error",
            "You have reached your specified API usage limits.",
        ),
        QuotaExhausted,
    );
    check(
        400,
        &body("invalid_request_error", "Your credit balance is too low"),
        QuotaExhausted,
    );
    check(401, &body("authentication_error", "invalid x-api-key"), Auth);
    check(402, &body("billing_error", "pay"), QuotaExhausted);
    check(403, &body("permission_error", "no"), Auth);
    check(
        404,
        &body("not_found_error", "model: claude-none"),
        InvalidRequest,
    );
    check(413, &body("request_too_large", "32 MB"), ContextOverflow);
    check(429, &body("rate_limit_error", "slow down please"), RateLimited);
    check(
        429,
        &body("rate_limit_error", "you have reached your monthly limit"),
        QuotaExhausted,
    );
    check(500, &body("api_error", "Internal server error"), Transient);
    check(504, &body("timeout_error", "late"), Transient);
    check(529, &body("overloaded_error", "Overloaded"), Overloaded);
}

#[test]
fn chat_servers_errors_have_their_classes() {
    let openai = |kind: &str, code: &str, message: &str| {
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}}).to_string()
    };
    check(
        400,
        &openai("invalid_request_error", "context_length_exceeded", "too long"),
        ContextOverflow,
    );
    check(
        400,
        &openai("invalid_request_error", "unknown_parameter", "no"),
        InvalidRequest,
    );
    check(
        401,
        &openai(
            "invalid_request_error",
            "invalid_api_key",
            "Incorrect API key provided",
        ),
        Auth,
    );
    check(
        429,
        &openai(
            "insufficient_quota",
            "insufficient_quota",
            "You exceeded your current quota",
        ),
        QuotaExhausted,
    );
    check(
        429,
        &openai("tokens", "rate_limit_exceeded", "too many tokens per minute"),
        RateLimited,
    );
    check(400, &openai("", "content_filter", "filtered"), ContentFilter);
    check(500, &openai("server_error", "", "oops"), Transient);
}

#[test]
fn local_servers_and_others_have_their_classes() {
    let llama = r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request (2009 tokens) exceeds the available context size (512 tokens)","n_ctx":512}}"#;
    check(400, llama, ContextOverflow);
    check(
        503,
        r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
        Overloaded,
    );
    check(
        500,
        r#"{"error":{"code":500,"message":"input is too large to process. increase the physical batch size"}}"#,
        ContextOverflow,
    );
    check(
        400,
        r#"{"code":"invalid-argument","error":"Incorrect API key provided: x"}"#,
        Auth,
    );
    check(
        400,
        r#"{"code":400,"error":"This model's maximum prompt length is 131072"}"#,
        ContextOverflow,
    );
    check(
        404,
        r#"{"error":"model \"x\" not found, try pulling it first"}"#,
        InvalidRequest,
    );
    check(422, r#"{"detail":[{"msg":"field required"}]}"#, InvalidRequest);
    check(
        403,
        r#"{"error":{"code":403,"message":"Your input was flagged by moderation"}}"#,
        ContentFilter,
    );
}

#[test]
fn bodies_that_are_no_json_do_not_matter() {
    check(502, "<html><body>Bad Gateway</body></html>", Transient);
    check(408, "", Transient);
    check(409, "lock", Transient);
    check(418, "teapot", InvalidRequest);
    check(302, "", InvalidRequest);
    check(503, "\u{0}\u{1}", Overloaded);
}

#[test]
fn the_whole_error_tells_status_words_and_wait() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", "7".parse().unwrap());
    let error = classify(
        429,
        &headers,
        br#"{"error":{"message":"later","type":"rate_limit_error"}}"#,
    );
    assert_eq!(
        error,
        ModelError {
            class: RateLimited,
            message: "HTTP 429: later".into(),
            status: Some(429),
            retry_after_ms: Some(7_000)
        }
    );
}

#[test]
fn a_server_that_says_retry_is_believed() {
    let mut headers = HeaderMap::new();
    headers.insert("x-should-retry", "true".parse().unwrap());
    assert_eq!(classify(400, &headers, b"").class, Transient);
}

#[test]
fn errors_inside_a_stream_have_their_classes() {
    let check = |frame: Value, expected: FailureClass| {
        assert_eq!(classify_stream_error(&frame).class, expected, "{frame}");
    };
    check(
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        Overloaded,
    );
    check(json!({"error": {"code": 429, "message": "later"}}), RateLimited);
    check(
        json!({"error": {"code": "insufficient_quota", "message": "pay"}}),
        QuotaExhausted,
    );
    check(
        json!({"error": {"type": "invalid_request_error", "message": "bad"}}),
        InvalidRequest,
    );
    check(json!({"error": {"code": 502, "message": "upstream"}}), Transient);
    check(json!({"error": "something broke"}), Transient);
}
