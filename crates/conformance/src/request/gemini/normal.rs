//! Normalises the alternative forms of Gemini requests.

use super::super::ids::Ids;
use crate::json::{drain, field, items, joined, set, take, text};
use serde_json::{Map, Value, json};

/// The placeholder for the missing signature of a call.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Optional defaults are dropped, tools become one list, results become text.
pub(in super::super) fn normal(body: &mut Value) {
    if let Some(system) = take(body, "systemInstruction") {
        let words = joined(system.get("parts").unwrap_or(&Value::Null), "\n\n");
        if !words.is_empty() {
            set(body, "system", words.into());
        }
    }
    let declared: Vec<Value> = drain(body, "tools")
        .iter()
        .flat_map(|tool| items(tool, "functionDeclarations"))
        .map(|declared| {
            let schema = declared.get("parametersJsonSchema").or_else(|| declared.get("parameters"));
            json!({ "name": declared.get("name"), "description": text(declared, "description"), "schema": schema })
        })
        .collect();
    take(body, "tools");
    if declared.is_empty() {
        take(body, "toolConfig");
    } else {
        set(body, "tools", declared.into());
    }
    if let Some(config) = body.pointer_mut("/toolConfig/functionCallingConfig")
        && let Some(names) = take(config, "allowed_function_names")
    {
        set(config, "allowedFunctionNames", names);
    }
    if let Some(generation) = field(body, "generationConfig") {
        normal_generation(generation);
        if generation.as_object().is_some_and(Map::is_empty) {
            take(body, "generationConfig");
        }
    }
    let mut contents = drain(body, "contents");
    let mut ids = Ids::default();
    for content in &mut contents {
        if matches!(text(content, "role"), "" | "function") {
            set(content, "role", json!("user"));
        }
        let parts: Vec<Value> = drain(content, "parts")
            .into_iter()
            .filter_map(|part| normal_part(part, &mut ids))
            .collect();
        set(content, "parts", parts.into());
    }
    contents.retain(|content| items(content, "parts").next().is_some());
    set(body, "contents", contents.into());
}

/// For a thinking budget, only none, some, or left to the model is distinguished.
fn normal_generation(generation: &mut Value) {
    for (key, default) in [
        ("candidateCount", json!(1)),
        ("responseMimeType", json!("text/plain")),
    ] {
        if generation.get(key) == Some(&default) {
            take(generation, key);
        }
    }
    if let Some(schema) = take(generation, "responseSchema") {
        set(generation, "responseJsonSchema", schema);
    }
    let Some(thinking) = field(generation, "thinkingConfig") else {
        return;
    };
    if thinking.get("includeThoughts") == Some(&json!(false)) {
        take(thinking, "includeThoughts");
    }
    match thinking.get("thinkingBudget").and_then(Value::as_i64) {
        Some(1..) => set(thinking, "thinkingBudget", json!("some")),
        Some(0) | None => {}
        Some(_) => drop(take(thinking, "thinkingBudget")),
    }
    let named = thinking
        .get("thinkingLevel")
        .and_then(Value::as_str)
        .map(str::to_lowercase);
    if let Some(named) = named {
        // The highest level that the protocol knows is `high`.
        set(thinking, "thinkingLevel", named.into());
    }
    if thinking.as_object().is_some_and(Map::is_empty) {
        take(generation, "thinkingConfig");
    }
}

fn normal_part(mut part: Value, ids: &mut Ids) -> Option<Value> {
    if part.get("thought") == Some(&json!(false)) {
        take(&mut part, "thought");
    }
    if text(&part, "thoughtSignature") == NO_SIGNATURE {
        take(&mut part, "thoughtSignature");
    }
    let silent =
        part.as_object().is_some_and(|fields| fields.len() == 1) && text(&part, "text").trim().is_empty();
    if silent && part.get("text").is_some() {
        return None;
    }
    for key in ["functionCall", "functionResponse"] {
        if let Some(inner) = field(&mut part, key) {
            ids.number(inner, "id");
        }
    }
    if let Some(call) = field(&mut part, "functionCall")
        && call.get("args").is_none()
    {
        set(call, "args", json!({}));
    }
    if let Some(response) = field(&mut part, "functionResponse") {
        let words = result(response.get("response").unwrap_or(&Value::Null));
        set(response, "response", words.into());
    }
    Some(part)
}

/// The text of a result: its only field if it has a usual name, else the whole result as JSON.
pub(super) fn result(response: &Value) -> String {
    let only = response.as_object().filter(|fields| fields.len() == 1);
    let named = ["output", "result", "error", "content"]
        .iter()
        .find_map(|key| only.and_then(|fields| fields.get(*key)));
    match named.unwrap_or(response) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
