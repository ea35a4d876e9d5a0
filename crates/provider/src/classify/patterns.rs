//! The patterns of known errors: each row lists words that must all occur, in lower case.

/// Whether a text contains all words of some row.
pub(super) fn has(text: &str, rows: &[&[&str]]) -> bool {
    rows.iter()
        .any(|words| words.iter().all(|word| text.contains(word)))
}

/// A conversation that is too long.
pub(super) const OVERFLOW: &[&[&str]] = &[
    &["prompt is too long"],
    &["input length and", "exceed context limit"],
    &["input is too long for requested model"],
    &["exceeds the context window"],
    &["exceeds the context length"],
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

/// The model wrote a tool call that its server could not parse: Groq, Ollama, llama.cpp.
pub(super) const MISCALLED: &[&[&str]] = &[
    &["tool_use_failed"],
    &["error parsing tool call"],
    &["failed to parse tool call"],
];

/// Out of money or quota.
pub(super) const QUOTA: &[&[&str]] = &[
    &["billing_error"],
    &["insufficient_quota"],
    &["usage_not_included"],
    &["doesn't have any credits"],
    &["used all available credits"],
    &["failed_precondition", "billing"],
    &["credit balance is too low"],
    &["insufficient balance"],
    &["insufficient credits"],
    &["reached your specified", "usage limit"],
    &["spend limit"],
    &["spending limit"],
    &["perday"],
    &["free-models-per-day"],
];

/// The same, unless the error names a wait: Google uses these words for limits per minute, too.
pub(super) const QUOTA_WITHOUT_WAIT: &[&[&str]] =
    &[&["exceeded your current quota"], &["monthly"], &["spend"]];

/// Too many requests, or too many tokens, for now.
pub(super) const RATE: &[&[&str]] = &[
    &["rate_limit"],
    &["rate limit"],
    &["resource_exhausted"],
    &["too_many_requests"],
    &["too many requests"],
    &["throttl"],
];

/// A single request over the limit per minute: waiting does not help, a shorter request does.
pub(super) const LARGER_THAN_RATE: &[&[&str]] = &[&["request too large", "tokens per min"]];

/// The provider's policy refuses the content.
pub(super) const FILTER: &[&[&str]] = &[
    &["content_filter"],
    &["content_policy"],
    &["content management policy"],
    &["misalignment_policy"],
    &["bio_policy"],
    &["flagged", "moderation"],
    &["violates usage guidelines"],
    &["invalid_prompt", "policy"],
];

/// The credential is not valid.
pub(super) const AUTH: &[&[&str]] = &[
    &["authentication_error"],
    &["permission_error"],
    &["invalid_api_key"],
    &["api_key_invalid"],
    &["incorrect api key"],
    &["invalid api key"],
    &["api key not valid"],
    &["unauthenticated"],
];

/// The server has no capacity.
pub(super) const OVERLOAD: &[&[&str]] = &[
    &["overloaded"],
    &["slow_down"],
    &["server_busy"],
    &["loading model"],
    &["insufficient_system_resource"],
    &["capacity exceeded"],
];

/// A failure on the server's side.
pub(super) const BROKEN: &[&[&str]] = &[
    &["api_error"],
    &["timeout_error"],
    &["server_error"],
    &["internal_error"],
    &["internal server error"],
];

/// A mistake in the request.
pub(super) const INVALID: &[&[&str]] = &[
    &["invalid_request"],
    &["not_found"],
    &["invalid_argument"],
    &["unsupported"],
];

/// Local servers answer 500 to requests that they will never accept.
pub(super) const NEVER: &[&[&str]] = &[
    &["requires --jinja"],
    &["cannot use both"],
    &["image input is not supported"],
    &["failed to parse grammar"],
    &["json schema conversion failed"],
    &["cannot identify image file"],
    &["failed to load image"],
    &["failed to process image"],
    &["failed to decode image"],
];
