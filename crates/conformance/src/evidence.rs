//! Obvious facts of a recorded answer, read without the decoder that is being checked.

use crate::cassette::Then;
use serde_json::Value;

/// Facts about an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Evidence {
    /// It reports a failure in its own frame.
    pub(crate) failed: bool,
    /// It has a terminal marker.
    pub(crate) ended: bool,
    /// The largest number of output tokens that it reports anywhere.
    pub(crate) output_tokens: u64,
}

/// Keys of the output token count.
const OUTPUT: [&str; 4] = [
    "output_tokens",
    "completion_tokens",
    "candidatesTokenCount",
    "eval_count",
];

/// Keys of the stop reason, anywhere in an answer.
const STOPS: [&str; 5] = [
    "finish_reason",
    "stop_reason",
    "finishReason",
    "done_reason",
    "stop_type",
];

/// Event types that end a stream.
const ENDS: [&str; 3] = ["message_stop", "response.completed", "response.incomplete"];

/// Stop reasons that are failures.
const FAILURES: [&str; 7] = [
    "error",
    "insufficient_system_resource",
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "failed",
];

impl Evidence {
    pub(crate) fn of(then: &Then) -> Self {
        let mut evidence = Self::default();
        let body = then.body.as_deref().unwrap_or_default();
        if !then.is_stream() {
            evidence.ended = true;
            match serde_json::from_str::<Value>(body) {
                Ok(value) => evidence.take(&value),
                Err(_) => evidence.failed = true,
            }
            return evidence;
        }
        for line in body.split(['\n', '\r']) {
            let data = line.strip_prefix("data:").unwrap_or(line).trim();
            if data == "[DONE]" {
                evidence.ended = true;
            } else if let Ok(frame) = serde_json::from_str::<Value>(data) {
                evidence.take(&frame);
            }
        }
        evidence
    }

    fn take(&mut self, frame: &Value) {
        let kind = frame.get("type").and_then(Value::as_str).unwrap_or_default();
        self.ended |= ENDS.contains(&kind) || frame.get("done") == Some(&Value::Bool(true));
        self.failed |= matches!(kind, "error" | "response.failed")
            || frame.get("error").is_some_and(|error| !error.is_null());
        self.walk(frame);
        // A pending background answer has not ended; a prompt that was blocked as a whole has failed.
        self.ended &= !matches!(
            frame.get("status").and_then(Value::as_str),
            Some("queued" | "in_progress")
        );
        self.failed |= frame.pointer("/promptFeedback/blockReason").is_some();
    }

    fn walk(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, inner) in fields {
                    self.field(key, inner);
                    self.walk(inner);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn field(&mut self, key: &str, value: &Value) {
        if OUTPUT.contains(&key) {
            self.output_tokens = self.output_tokens.max(value.as_u64().unwrap_or_default());
        }
        if let Some(reason) = value
            .as_str()
            .filter(|reason| !reason.is_empty() && STOPS.contains(&key))
        {
            self.failed |= FAILURES.contains(&reason);
            // Anthropic reports the reason before the end of the stream; for the others it marks the end.
            self.ended |= key != "stop_reason";
        }
    }
}
