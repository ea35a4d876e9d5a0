//! Anthropic's messages.

use super::words;
use crate::model_server::plan::{Call, Step};
use serde_json::{Value, json};

pub(super) fn events(step: &Step) -> Vec<Value> {
    let usage = json!({"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0});
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "test",
            "content": [], "stop_reason": null, "usage": usage}}),
    ];
    let stop = match step {
        Step::Hang(partial) => {
            text(partial, &mut events);
            return events;
        }
        Step::Text(answer) => {
            text(answer, &mut events);
            events.push(json!({"type": "content_block_stop", "index": 0}));
            "end_turn"
        }
        Step::Calls(calls) => {
            for (index, call) in calls.iter().enumerate() {
                tool(index, call, &mut events);
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

fn text(text: &str, events: &mut Vec<Value>) {
    events.push(
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    );
    for word in words(text) {
        events.push(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}),
        );
    }
}

fn tool(index: usize, call: &Call, events: &mut Vec<Value>) {
    // Providers may reuse ids; the daemon's own ids must not depend on them.
    let block = json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": call.name, "input": {}});
    events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
    let delta = json!({"type": "input_json_delta", "partial_json": call.input.to_string()});
    events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    events.push(json!({"type": "content_block_stop", "index": index}));
}
