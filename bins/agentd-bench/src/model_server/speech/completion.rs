//! The raw completion of llama.cpp. Calls are JSON in the text.

use super::words;
use crate::model_server::plan::Step;
use serde_json::{Value, json};

pub(super) fn events(step: &Step) -> Vec<Value> {
    let said = match step {
        Step::Hang(text) | Step::Text(text) => words(text),
        Step::Calls(calls) => calls
            .iter()
            .map(|call| format!("{}\n", json!({"tool": call.name, "args": call.input})))
            .collect(),
    };
    let mut events: Vec<Value> = said
        .into_iter()
        .map(|piece| json!({"index": 0, "content": piece, "stop": false}))
        .collect();
    if !step.hang() {
        events.push(json!({"content": "", "stop": true, "model": "test", "stop_type": "eos", "prompt": "", "truncated": false,
            "tokens_evaluated": 100, "tokens_predicted": 20, "tokens_cached": 0,
            "timings": {"cache_n": 0, "prompt_n": 100, "predicted_n": 20}}));
    }
    events
}
