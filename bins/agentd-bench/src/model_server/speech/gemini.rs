//! Gemini's generateContent.

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
                    .map(|word| chunk(&json!([{ "text": word }]), None)),
            );
            if step.hang() {
                return events;
            }
        }
        Step::Calls(calls) => {
            let parts: Vec<Value> = calls
                .iter()
                .map(|call| json!({"functionCall": {"name": call.name, "args": call.input}}))
                .collect();
            events.push(chunk(&json!(parts), None));
        }
    }
    events.push(chunk(&json!([{ "text": "" }]), Some("STOP")));
    events
}

fn chunk(parts: &Value, finish: Option<&str>) -> Value {
    let content = json!({"role": "model", "parts": parts});
    match finish {
        None => {
            json!({"modelVersion": "test", "responseId": "r1", "candidates": [{"content": content, "index": 0}]})
        }
        Some(reason) => json!({"modelVersion": "test", "responseId": "r1",
            "candidates": [{"content": content, "index": 0, "finishReason": reason}],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}}),
    }
}
