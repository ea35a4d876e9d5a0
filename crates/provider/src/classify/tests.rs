use super::*;
use crate::error::Advice;
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
            retry_after_ms: Some(7_000),
            advice: None,
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

#[test]
fn gemini_names_limits_of_a_minute_and_of_a_day_with_the_same_words() {
    let body = |quota: &str, wait: Value| {
        let violation = json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]});
        json!({"error": {
            "code": 429, "status": "RESOURCE_EXHAUSTED",
            "message": "You exceeded your current quota, please check your plan and billing details.",
            "details": [violation, wait],
        }})
        .to_string()
    };
    let wait = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"});
    let (day, minute) = (
        "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
        "GenerateRequestsPerMinutePerProject",
    );
    check(429, &body(minute, wait.clone()), RateLimited);
    check(429, &body(day, wait), QuotaExhausted);
    check(429, &body(minute, json!({})), QuotaExhausted);
    check(
        400,
        r#"{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
        Auth,
    );
}

#[test]
fn what_local_servers_will_never_take_is_not_tried_again() {
    let body = |message: &str| {
        json!({"error": {"code": 500, "message": message, "type": "server_error"}}).to_string()
    };
    check(500, &body("tools param requires --jinja flag"), InvalidRequest);
    check(
        500,
        &body("Cannot use both json_schema and grammar"),
        InvalidRequest,
    );
    check(
        500,
        &body("image input is not supported - hint: mmproj"),
        InvalidRequest,
    );
}

#[test]
fn other_providers_have_their_own_words() {
    check(
        403,
        r#"{"code":"The caller does not have permission","error":"Your team doesn't have any credits yet."}"#,
        QuotaExhausted,
    );
    check(
        403,
        r#"{"error":"Content violates usage guidelines. Failed check: SAFETY_CHECK"}"#,
        ContentFilter,
    );
    check(
        400,
        r#"{"error":{"code":"misalignment_policy_violation","message":"stopped"}}"#,
        ContentFilter,
    );
    check(400, "", ContextOverflow);
    check(413, "", ContextOverflow);
    check(
        498,
        r#"{"error":{"message":"flex tier capacity exceeded"}}"#,
        Overloaded,
    );
    check(
        400,
        r#"{"message":"ThrottlingException: rate exceeded"}"#,
        RateLimited,
    );
    let behind = json!({"error": {"code": 400, "message": "Provider returned error", "metadata": {
        "raw": "{\"error\":{\"message\":\"prompt is too long: 9000 tokens > 8192 maximum\"}}",
    }}});
    check(400, &behind.to_string(), ContextOverflow);
}

#[test]
fn a_rate_limit_that_the_server_says_not_to_retry_is_a_quota() {
    let mut headers = HeaderMap::new();
    headers.insert("x-should-retry", "false".parse().unwrap());
    assert_eq!(classify(429, &headers, b"{}").class, QuotaExhausted);
    headers.insert("retry-after", "3".parse().unwrap());
    assert_eq!(classify(429, &headers, b"{}").class, RateLimited);
}

fn advice_of(message: &str) -> Option<Advice> {
    let body = json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string();
    classify(400, &HeaderMap::new(), body.as_bytes()).advice
}

fn check_window(message: &str, tokens: u64, sent: Option<u64>) {
    assert_eq!(
        advice_of(message),
        Some(Advice::Window { tokens, sent }),
        "{message}"
    );
}

#[test]
fn an_overflow_teaches_the_window_and_the_size_of_the_request() {
    check_window(
        "prompt is too long: 213462 tokens > 200000 maximum",
        200_000,
        Some(213_462),
    );
    check_window(
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
        200_000,
        Some(190_000),
    );
    check_window(
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        8_192,
        Some(9_000),
    );
    check_window(
        "This endpoint's maximum context length is 131,072 tokens. However, you requested about 140,000 tokens \
         (139,000 of text input, 1,000 in the output).",
        131_072,
        Some(139_000),
    );
    check_window(
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the messages, \
         500 in the completion).",
        4_096,
        Some(4_500),
    );
}

#[test]
fn others_say_it_in_other_words() {
    check_window(
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1_048_576,
        Some(1_200_000),
    );
    check_window(
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        131_072,
        Some(537_812),
    );
    check_window(
        "Your request exceeded model token limit: 131072 (requested: 140000)",
        131_072,
        Some(140_000),
    );
    check_window(
        "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32_768,
        Some(65_673),
    );
    check_window(
        "prompt token count of 70000 exceeds the limit of 64000",
        64_000,
        Some(70_000),
    );
    check_window(
        "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
        512,
        Some(2_009),
    );
    check_window(
        "Trying to keep the first 6000 tokens when the context overflows, which is greater than the context length. \
         However, the model is loaded with context length of only 4096 tokens.",
        4_096,
        Some(6_000),
    );
    check_window(
        "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7012, please reduce",
        6_000,
        Some(7_012),
    );
    assert_eq!(
        advice_of("Your input exceeds the context window of this model."),
        None
    );
}

#[test]
fn llama_cpp_tells_the_window_in_fields() {
    let body = br#"{"error":{"code":400,"type":"exceed_context_size_error","message":"too long","n_prompt_tokens":2009,"n_ctx":512}}"#;
    let error = classify(400, &HeaderMap::new(), body);
    let advice = Advice::Window {
        tokens: 512,
        sent: Some(2_009),
    };
    assert_eq!((error.class, error.advice), (ContextOverflow, Some(advice)));
}

#[test]
fn a_refused_level_teaches_which_ones_are_taken() {
    use agentd_protocol::ThinkingLevel::{High, Low, Max, Medium, Off};
    let check = |message: &str, levels: &[agentd_protocol::ThinkingLevel]| {
        assert_eq!(
            advice_of(message),
            Some(Advice::Think(levels.to_vec())),
            "{message}"
        );
    };
    check(
        "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'low', \
         'medium', and 'high'. None of this is new.",
        &[Low, Medium, High],
    );
    check("`reasoning_effort` must be one of `none` or `default`", &[Off]);
    check("effort: supported values are: high, xhigh, max", &[High, Max]);
    check("reasoning_effort is not supported with this model", &[]);
    check("Argument not supported on this model: reasoningEffort", &[]);
    check("\"qwen2\" does not support thinking", &[]);
    check(
        "Budget 0 is invalid. This model only works in thinking mode.",
        &[],
    );
    check(
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        &[Off],
    );
    check(
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        &[Off],
    );
    check(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        &[Off],
    );
}

#[test]
fn a_refused_part_teaches_to_leave_it_out() {
    let check = |message: &str, part: agentd_protocol::RequestPart| {
        assert_eq!(advice_of(message), Some(Advice::Without(part)), "{message}");
    };
    use agentd_protocol::RequestPart::{CacheHour, CacheMarks, Reasoning, Temperature};
    check(
        "system.0.cache_control: Extra inputs are not permitted",
        CacheMarks,
    );
    check("Unknown field `cache_control` in messages[3]", CacheMarks);
    check(
        "system.0.cache_control.ephemeral.ttl: Extra inputs are not permitted",
        CacheHour,
    );
    check("`temperature` is deprecated for this model.", Temperature);
    check(
        "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
        Temperature,
    );
    check(
        "`temperature` may only be set to 1 when thinking is enabled",
        Temperature,
    );
    check(
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        Reasoning,
    );
    check(
        "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
        Reasoning,
    );
    check(
        "messages.2.reasoning_content: Extra inputs are not permitted",
        Reasoning,
    );
    let code = json!({"error": {"message": "no", "type": "invalid_request_error", "code": "invalid_encrypted_content"}});
    assert_eq!(
        classify(400, &HeaderMap::new(), code.to_string().as_bytes()).advice,
        Some(Advice::Without(Reasoning))
    );
    assert_eq!(advice_of("messages: at least one message is required"), None);
}

#[test]
fn a_call_that_the_server_could_not_read_is_the_models_mistake() {
    let groq = json!({"error": {
        "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": "<function=Read{\"path\": \"a rate limit\"}</function>",
        "status_code": 400,
    }});
    let advice = Advice::Miscalled {
        name: "Read".into(),
        said: "<function=Read{\"path\": \"a rate limit\"}</function>".into(),
    };
    let error = classify(400, &HeaderMap::new(), groq.to_string().as_bytes());
    assert_eq!(
        (error.class, error.advice),
        (InvalidRequest, Some(advice.clone()))
    );
    let error = classify_stream_error(&groq);
    assert_eq!((error.class, error.advice), (InvalidRequest, Some(advice)));
    let ollama = json!({"error": "error parsing tool call: raw='{\"name\": \"Ls\", rate limit', err=invalid character"});
    let error = classify(500, &HeaderMap::new(), ollama.to_string().as_bytes());
    assert_eq!(error.class, InvalidRequest);
    assert!(matches!(error.advice, Some(Advice::Miscalled { name, .. }) if name == "Ls"));
}

#[test]
fn an_optional_field_that_is_refused_is_left_out() {
    use agentd_protocol::RequestPart::{DeveloperRole, LimitName, StreamOptions, ToolChoice};
    let check = |message: &str, part: agentd_protocol::RequestPart| {
        assert_eq!(advice_of(message), Some(Advice::Without(part)), "{message}");
    };
    check("Unknown field: stream_options", StreamOptions);
    check("stream_options: Extra inputs are not permitted", StreamOptions);
    check(
        "Unrecognized request argument supplied: stream_options",
        StreamOptions,
    );
    check("include_usage is not supported", StreamOptions);
    check(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        LimitName,
    );
    check(
        "Unrecognized request argument supplied: max_completion_tokens",
        LimitName,
    );
    check("property 'max_completion_tokens' is unsupported", LimitName);
    check("tool_choice is not supported by this model", ToolChoice);
    check("Unknown parameter: 'parallel_tool_calls'.", ToolChoice);
    check("messages[0].role: developer role is not supported", DeveloperRole);
}
