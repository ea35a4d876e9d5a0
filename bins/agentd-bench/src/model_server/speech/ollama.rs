//! Ollama's chat.

use super::words;
use crate::model_server::plan::Step;
use serde_json::{Value, json};

pub(super) fn events(step: &Step) -> Vec<Value> {
    let mut events = Vec::new();
    match step {
        Step::Hang(text) | Step::Text(text) => {
            events.extend(
                words(text)
                    .into_iter()
                    .map(|word| says(&json!({"role": "assistant", "content": word}))),
            );
            if step.hang() {
                return events;
            }
        }
        Step::Calls(calls) => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| json!({"function": {"name": call.name, "arguments": call.input}}))
                .collect();
            events.push(says(
                &json!({"role": "assistant", "content": "", "tool_calls": calls}),
            ));
        }
    }
    events.push(
        json!({"model": "test", "message": {"role": "assistant", "content": ""}, "done": true,
        "done_reason": "stop", "prompt_eval_count": 100, "eval_count": 20}),
    );
    events
}

fn says(message: &Value) -> Value {
    json!({"model": "test", "message": message, "done": false})
}
