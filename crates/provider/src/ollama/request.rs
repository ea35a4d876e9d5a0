//! Requests of Ollama's own protocol.

use crate::body::{Encoded, Params, Prompt, ToolDef};
use crate::chat::message::{text, text_or_gap, user_text};
use crate::chat::request::{Tool, system};
use crate::fields::{Head, arguments, close_messages, json_bytes, wire_name};
use crate::spec::ModelSpec;
use crate::thinking;
use agentd_protocol::{Block, ImageSource, Message, Role, ThinkingLevel};
use agentd_settings::ThinkingForm;
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Everything before the messages, including the system message.
pub(crate) fn prefix(spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
    let limit = params.max_output.unwrap_or(spec.max_output).min(spec.max_output);
    let mut options = json!({ "num_ctx": spec.context_window, "num_predict": limit });
    let temperature = spec.temperature.filter(|_| spec.capabilities.temperature);
    if let (Some(temperature), Some(map)) = (temperature, options.as_object_mut()) {
        map.insert("temperature".into(), json!(temperature));
    }
    let mut body = Head::default();
    body.field("model", &spec.model);
    body.field("stream", &spec.stream);
    body.field("options", &options);
    // With these, a newer server fails where others silently drop the beginning of the conversation.
    body.field("truncate", &false);
    body.field("shift", &false);
    if !tools.is_empty() {
        body.field("tools", &Tool::all(tools));
    }
    let mut bytes = body.open_array("messages");
    bytes.extend(system(spec, prompt));
    bytes.into()
}

/// Everything after the messages.
pub(crate) fn suffix(spec: &ModelSpec, params: &Params<'_>) -> Bytes {
    let mut fields = Map::new();
    fields.extend(thinking::level(spec).map(|level| ("think".to_owned(), think(spec, level))));
    if let (true, Some((_, schema))) = (spec.capabilities.structured_output, params.schema) {
        fields.insert("format".into(), schema.clone());
    }
    close_messages(fields)
}

/// A few models accept a level, the others only on or off.
fn think(spec: &ModelSpec, level: ThinkingLevel) -> Value {
    match (spec.capabilities.thinking, level) {
        (_, ThinkingLevel::Off) => json!(false),
        (ThinkingForm::Effort, ThinkingLevel::Minimal | ThinkingLevel::Low) => json!("low"),
        (ThinkingForm::Effort, ThinkingLevel::Medium) => json!("medium"),
        (ThinkingForm::Effort, ThinkingLevel::High | ThinkingLevel::Max) => json!("high"),
        _ => json!(true),
    }
}

/// One message; `asked` is the last answer with tool calls, whose names the results repeat.
pub(crate) fn message(
    spec: &ModelSpec,
    message: &Message,
    after_text: bool,
    asked: Option<&Message>,
) -> Encoded {
    match message.role {
        Role::User => user(spec, &message.content, after_text, asked),
        Role::Assistant => {
            let bytes = assistant(spec, &message.content)
                .map(|value| json_bytes(&value))
                .unwrap_or_default();
            Encoded {
                bytes,
                ..Encoded::default()
            }
        }
    }
}

fn user(spec: &ModelSpec, content: &[Block], after_text: bool, asked: Option<&Message>) -> Encoded {
    let mut messages: Vec<Vec<u8>> = content
        .iter()
        .filter_map(|block| tool_result(block, asked))
        .map(|value| json_bytes(&value))
        .collect();
    let images: Vec<&str> = content.iter().filter_map(|block| image(spec, block)).collect();
    let words = |block| {
        if images.is_empty() {
            text_or_gap(block)
        } else {
            text(block)
        }
    };
    let said = content.iter().filter_map(words).collect::<Vec<_>>().join("\n\n");
    if images.is_empty() {
        return user_text(messages, &said, after_text);
    }
    messages.push(json_bytes(
        &json!({ "role": "user", "content": said, "images": images }),
    ));
    Encoded {
        bytes: messages.join(&b','),
        ..Encoded::default()
    }
}

fn image<'a>(spec: &ModelSpec, block: &'a Block) -> Option<&'a str> {
    match block {
        Block::Image {
            source: ImageSource::Data(data),
            ..
        } if spec.capabilities.images => Some(data),
        _ => None,
    }
}

fn tool_result(block: &Block, asked: Option<&Message>) -> Option<Value> {
    let Block::ToolResult {
        tool_use_id, content, ..
    } = block
    else {
        return None;
    };
    let mut message = json!({ "role": "tool", "content": content, "tool_call_id": tool_use_id });
    let called = |block: &Block| match block {
        Block::ToolUse { id, name, .. } if id == tool_use_id => Some(wire_name(name)),
        _ => None,
    };
    let name = asked.and_then(|asked| asked.content.iter().find_map(called));
    if let (Some(name), Some(map)) = (name, message.as_object_mut()) {
        map.insert("tool_name".into(), json!(name));
    }
    Some(message)
}

fn assistant(spec: &ModelSpec, content: &[Block]) -> Option<Value> {
    let words: String = content.iter().filter_map(text).collect();
    let calls: Vec<Value> = content.iter().filter_map(call).collect();
    if words.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    message.insert("content".into(), json!(words));
    if spec.compat.replay_reasoning {
        let thought = content.iter().find_map(thought);
        message.extend(thought.map(|thought| ("thinking".to_owned(), thought)));
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    Some(message.into())
}

fn call(block: &Block) -> Option<Value> {
    let Block::ToolUse { id, name, input } = block else {
        return None;
    };
    Some(json!({ "id": id, "function": { "name": wire_name(name), "arguments": arguments(input) } }))
}

/// The reasoning that this dialect produced; that of others has other fields.
fn thought(block: &Block) -> Option<Value> {
    let Block::Thinking { raw: Some(raw), .. } = block else {
        return None;
    };
    let mut fields: Map<String, Value> = serde_json::from_str(raw).ok()?;
    if fields.contains_key("type") {
        return None;
    }
    fields.remove("thinking").filter(Value::is_string)
}
