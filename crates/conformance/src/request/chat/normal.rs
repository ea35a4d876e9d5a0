//! Normalises the alternative forms of Chat Completions requests.

use super::super::ids::Ids;
use crate::json::{drain, field, joined, set, take, text};
use serde_json::{Value, json};

/// Lists of texts become one text, adjacent messages that we would join are joined, arguments become JSON.
pub(in super::super) fn normal(body: &mut Value) {
    for (key, default) in [
        ("stream", json!(false)),
        ("n", json!(1)),
        ("response_format", json!({"type": "text"})),
    ] {
        if body.get(key) == Some(&default) {
            take(body, key);
        }
    }
    if body.get("tools").is_none() {
        take(body, "tool_choice");
        take(body, "parallel_tool_calls");
    }
    // Mistral accepts both `any` and the usual `required`.
    if body.get("tool_choice") == Some(&json!("any")) {
        set(body, "tool_choice", json!("required"));
    }
    // Beside the `thinking` switch, no effort level is sent.
    if body.get("thinking").is_some() {
        take(body, "reasoning_effort");
    }
    // The highest level has two names.
    for pointer in ["/reasoning_effort", "/reasoning/effort"] {
        if let Some(effort) = body.pointer_mut(pointer).filter(|effort| *effort == "max") {
            *effort = json!("xhigh");
        }
    }
    for tool in field(body, "tools")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(function) = field(tool, "function")
            && text(function, "description").is_empty()
        {
            take(function, "description");
        }
    }
    let mut ids = Ids::default();
    let mut told: Vec<Value> = Vec::new();
    for mut message in drain(body, "messages") {
        normal_message(&mut message, &mut ids);
        let role = text(&message, "role").to_owned();
        let joins = told.last_mut().filter(|last| {
            text(last, "role") == role
                && matches!(role.as_str(), "user" | "system")
                && last.get("content").is_some_and(Value::is_string)
                && message.get("content").is_some_and(Value::is_string)
        });
        if let Some(last) = joins {
            let both = format!("{}\n\n{}", text(last, "content"), text(&message, "content"));
            set(last, "content", both.into());
        } else if message.as_object().is_some_and(|fields| fields.len() > 1) {
            told.push(message);
        }
    }
    set(body, "messages", told.into());
}

fn normal_message(message: &mut Value, ids: &mut Ids) {
    if text(message, "role") == "developer" {
        set(message, "role", json!("system"));
    }
    let between = match text(message, "role") {
        "assistant" => "",
        "tool" => "\n",
        _ => "\n\n",
    };
    let content = take(message, "content").unwrap_or_default();
    let plain = content
        .as_array()
        .is_none_or(|parts| parts.iter().all(|part| text(part, "type") == "text"));
    if plain {
        let words = joined(&content, between);
        if !words.trim().is_empty() || text(message, "role") == "tool" {
            set(message, "content", words.into());
        }
    } else {
        set(message, "content", content);
    }
    ids.number(message, "tool_call_id");
    for call in field(message, "tool_calls")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        ids.number(call, "id");
        if let Some(function) = field(call, "function") {
            let arguments = take(function, "arguments").unwrap_or_default();
            set(function, "arguments", object(parsed(arguments)));
        }
    }
}

/// Arguments as JSON; text that is not an object stays text.
pub(in super::super) fn parsed(arguments: Value) -> Value {
    match &arguments {
        Value::String(text) if text.trim().is_empty() => json!({}),
        Value::String(text) => serde_json::from_str::<Value>(text)
            .ok()
            .filter(Value::is_object)
            .unwrap_or(arguments),
        _ => arguments,
    }
}

/// Wraps arguments that are not an object in one, because providers require objects.
pub(in super::super) fn object(arguments: Value) -> Value {
    match arguments {
        Value::Object(_) => arguments,
        Value::String(text) => json!({ "unparsed": text }),
        other => json!({ "unparsed": other.to_string() }),
    }
}
