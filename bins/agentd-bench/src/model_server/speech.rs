//! The two ways of speaking: Anthropic's and OpenAI's server-sent events.

use super::plan::Step;
use bytes::Bytes;
use serde_json::{Value, json};

/// The dialect of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    Anthropic,
    OpenAi,
}

impl Speech {
    /// The stream's chunks, one per event.
    pub(super) fn chunks(self, step: &Step) -> Vec<Bytes> {
        let events = match self {
            Self::Anthropic => anthropic(step),
            Self::OpenAi => open_ai(step),
        };
        let mut chunks: Vec<Bytes> = events.iter().map(|event| self.frame(event)).collect();
        if self == Self::OpenAi && !step.hang() {
            chunks.push(Bytes::from_static(b"data: [DONE]\n\n"));
        }
        chunks
    }

    fn frame(self, event: &Value) -> Bytes {
        match self {
            Self::Anthropic => {
                let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
                Bytes::from(format!("event: {kind}\ndata: {event}\n\n"))
            }
            Self::OpenAi => Bytes::from(format!("data: {event}\n\n")),
        }
    }

    /// The body of an error answer.
    pub(super) fn error(self, status: u16) -> String {
        let kind = match status {
            401 => "authentication_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        match self {
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": kind, "message": "as planned"}}).to_string()
            }
            Self::OpenAi => json!({"error": {"type": kind, "message": "as planned"}}).to_string(),
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

fn anthropic(step: &Step) -> Vec<Value> {
    let usage = json!({"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0});
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "test",
            "content": [], "stop_reason": null, "usage": usage}}),
    ];
    let text = |index: usize, text: &str, events: &mut Vec<Value>| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}));
        for word in words(text) {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": word}}));
        }
    };
    let stop = match step {
        Step::Hang(partial) => {
            text(0, partial, &mut events);
            return events;
        }
        Step::Text(answer) => {
            text(0, answer, &mut events);
            events.push(json!({"type": "content_block_stop", "index": 0}));
            "end_turn"
        }
        Step::Calls(commands) => {
            for (index, command) in commands.iter().enumerate() {
                let arguments = json!({"command": command}).to_string();
                // Providers repeat their ids; ours must not depend on them.
                let block =
                    json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": "Bash", "input": {}});
                events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
                let delta = json!({"type": "input_json_delta", "partial_json": arguments});
                events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
                events.push(json!({"type": "content_block_stop", "index": index}));
            }
            "tool_use"
        }
    };
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}}),
    );
    events.push(json!({"type": "message_stop"}));
    events
}

fn open_ai(step: &Step) -> Vec<Value> {
    let chunk = |delta: Value, finish: Option<&str>| {
        json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    let finish = match step {
        Step::Hang(text) | Step::Text(text) => {
            events.extend(
                words(text)
                    .into_iter()
                    .map(|word| chunk(json!({"content": word}), None)),
            );
            if step.hang() {
                return events;
            }
            "stop"
        }
        Step::Calls(commands) => {
            for (index, command) in commands.iter().enumerate() {
                let arguments = json!({"command": command}).to_string();
                let start = json!({"index": index, "id": format!("call_{index}"), "type": "function",
                    "function": {"name": "Bash", "arguments": ""}});
                events.push(chunk(json!({"tool_calls": [start]}), None));
                let rest = json!({"index": index, "function": {"arguments": arguments}});
                events.push(chunk(json!({"tool_calls": [rest]}), None));
            }
            "tool_calls"
        }
    };
    events.push(chunk(json!({}), Some(finish)));
    events.push(
        json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}}),
    );
    events
}
