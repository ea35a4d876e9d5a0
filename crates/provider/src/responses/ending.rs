//! The end of an answer: its usage and cost, and why it stopped.

use crate::classify::classify_stream_error;
use crate::error::ModelError;
use crate::fields::number;
use agentd_protocol::{StopReason, Usage};
use serde_json::{Value, json};

/// xAI reports costs in these fractions of a dollar.
const TICKS_PER_USD: f64 = 1e10;

/// The token counts of an answer. The protocol includes cached tokens in the input, and reasoning in the output.
pub(crate) fn usage(usage: &Value) -> Usage {
    let of = |pointer: &str| number(usage, pointer).unwrap_or_default();
    let cache_read = of("/input_tokens_details/cached_tokens");
    let cache_write = of("/input_tokens_details/cache_write_tokens");
    Usage {
        input: of("/input_tokens")
            .saturating_sub(cache_read)
            .saturating_sub(cache_write),
        output: of("/output_tokens"),
        cache_read,
        cache_write,
        cache_write_1h: 0,
        reasoning: of("/output_tokens_details/reasoning_tokens"),
    }
}

/// The cost that the provider itself reports.
pub(crate) fn cost_usd(usage: &Value) -> Option<f64> {
    let of = |key: &str| usage.get(key).and_then(Value::as_f64);
    of("cost").or_else(|| of("cost_in_usd_ticks").map(|ticks| ticks / TICKS_PER_USD))
}

/// Why an answer is incomplete.
pub(crate) fn cut(response: &Value) -> StopReason {
    match response
        .pointer("/incomplete_details/reason")
        .and_then(Value::as_str)
    {
        Some("max_output_tokens" | "max_tokens" | "length") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::ContentFilter,
        _ => StopReason::Other,
    }
}

/// An error event with its fields at the top level; every dialect handles one with a nested error object.
pub(crate) fn stream_error(frame: &Value) -> ModelError {
    let fields = json!({ "code": frame.get("code"), "message": frame.get("message") });
    classify_stream_error(&json!({ "error": fields }))
}

/// Why an answer failed.
pub(crate) fn failure(response: &Value) -> ModelError {
    match response.get("error").filter(|error| !error.is_null()) {
        Some(error) => classify_stream_error(&json!({ "error": error })),
        None => ModelError::transient("the provider ended the answer with an error"),
    }
}
