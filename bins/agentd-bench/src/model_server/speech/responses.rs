//! OpenAI's responses.

use super::words;
use crate::model_server::plan::Step;
use serde_json::{Value, json};

pub(super) fn events(step: &Step) -> Vec<Value> {
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "model": "test", "status": "in_progress", "output": []}}),
    ];
    let mut output = Vec::new();
    match step {
        Step::Hang(text) | Step::Text(text) => {
            let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []});
            events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": item}));
            let words = words(text);
            for word in &words {
                events.push(
                    json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0,
                    "item_id": "msg_1", "delta": word}),
                );
            }
            if step.hang() {
                return events;
            }
            let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": words.concat(), "annotations": []}]});
            events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
            output.push(item);
        }
        Step::Calls(calls) => {
            for (index, call) in calls.iter().enumerate() {
                let item = json!({"type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_{index}"),
                    "name": call.name, "arguments": call.input.to_string(), "status": "completed"});
                events
                    .push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
                events
                    .push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
                output.push(item);
            }
        }
    }
    let usage = json!({"input_tokens": 100, "output_tokens": 20, "total_tokens": 120});
    events.push(json!({"type": "response.completed", "response": {"id": "resp_1", "model": "test", "status": "completed",
        "output": output, "usage": usage}}));
    events
}
