//! OpenAI's chat completions.

use super::words;
use crate::model_server::plan::Step;
use serde_json::{Value, json};

pub(super) fn events(step: &Step) -> Vec<Value> {
    let mut events = vec![chunk(&json!({"role": "assistant", "content": ""}), None)];
    let finish = match step {
        Step::Hang(text) | Step::Text(text) => {
            let said = words(text)
                .into_iter()
                .map(|word| chunk(&json!({"content": word}), None));
            events.extend(said);
            if step.hang() {
                return events;
            }
            "stop"
        }
        Step::Calls(calls) => {
            for (index, call) in calls.iter().enumerate() {
                let start = json!({"index": index, "id": format!("call_{index}"), "type": "function",
                    "function": {"name": call.name, "arguments": ""}});
                events.push(chunk(&json!({"tool_calls": [start]}), None));
                let rest = json!({"index": index, "function": {"arguments": call.input.to_string()}});
                events.push(chunk(&json!({"tool_calls": [rest]}), None));
            }
            "tool_calls"
        }
    };
    events.push(chunk(&json!({}), Some(finish)));
    events.push(
        json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}}),
    );
    events
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}
