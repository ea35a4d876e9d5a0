//! Requests of Chat Completions.

use crate::body::{Encoded, Params, Prompt, ToolDef};
use crate::fields::{arguments, json_bytes};
use crate::spec::ModelSpec;
use agentd_protocol::{Block, ImageSource, Message, Role};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Everything before the messages, the system message included.
pub(crate) fn prefix(spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], params: &Params) -> Bytes {
    let limit = params.max_output.unwrap_or(spec.max_output).min(spec.max_output);
    let limit_name = if spec.compat.max_completion_tokens {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    let mut body = Map::new();
    body.insert("model".into(), json!(spec.model));
    body.insert("stream".into(), json!(true));
    body.insert("stream_options".into(), json!({ "include_usage": true }));
    body.insert(limit_name.into(), json!(limit));
    if !tools.is_empty() {
        body.insert("tools".into(), tools.iter().map(tool).collect());
    }
    let mut bytes = json_bytes(&Value::Object(body));
    bytes.pop();
    bytes.extend_from_slice(br#","messages":["#);
    if !prompt.system.is_empty() {
        bytes.extend(json_bytes(&json!({ "role": "system", "content": prompt.system })));
    }
    bytes.into()
}

fn tool(tool: &ToolDef) -> Value {
    let function = json!({ "name": tool.name, "description": tool.description, "parameters": tool.schema });
    json!({ "type": "function", "function": function })
}

/// One message: tool results become messages of their own, and a user's text goes on inside the user's text before it,
/// because the templates of many local models insist that the roles alternate.
pub(crate) fn message(spec: &ModelSpec, message: &Message, after_text: bool) -> Encoded {
    match message.role {
        Role::User => user(&message.content, after_text),
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

fn user(content: &[Block], after_text: bool) -> Encoded {
    let mut messages: Vec<Vec<u8>> = content
        .iter()
        .filter_map(tool_result)
        .map(|value| json_bytes(&value))
        .collect();
    let images = content.iter().any(|block| matches!(block, Block::Image { .. }));
    let texts: Vec<&str> = content.iter().filter_map(text).collect();
    if images {
        let parts: Vec<Value> = content.iter().filter_map(part).collect();
        messages.push(json_bytes(&json!({ "role": "user", "content": parts })));
    } else if !texts.is_empty() {
        let joins = after_text && messages.is_empty();
        let text = texts.join("\n\n");
        if joins {
            return Encoded {
                bytes: continuation(&text),
                joins,
                open: true,
            };
        }
        messages.push(json_bytes(&json!({ "role": "user", "content": text })));
    }
    Encoded {
        bytes: messages.join(&b','),
        joins: false,
        open: !images && !texts.is_empty(),
    }
}

/// The rest of a JSON string that is already open, and the end of its message.
fn continuation(text: &str) -> Vec<u8> {
    let mut bytes = br"\n\n".to_vec();
    let quoted = json_bytes(&json!(text));
    bytes.extend_from_slice(quoted.get(1..).unwrap_or_default());
    bytes.push(b'}');
    bytes
}

fn tool_result(block: &Block) -> Option<Value> {
    let Block::ToolResult {
        tool_use_id, content, ..
    } = block
    else {
        return None;
    };
    Some(json!({ "role": "tool", "tool_call_id": tool_use_id, "content": content }))
}

fn text(block: &Block) -> Option<&str> {
    let Block::Text { text } = block else { return None };
    (!text.trim().is_empty()).then_some(text)
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { .. } => text(block).map(|text| json!({ "type": "text", "text": text })),
        Block::Image {
            media_type,
            source: ImageSource::Data(data),
        } => {
            let url = format!("data:{media_type};base64,{data}");
            Some(json!({ "type": "image_url", "image_url": { "url": url } }))
        }
        Block::Image { .. } => Some(json!({ "type": "text", "text": "[image not available]" })),
        Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Unknown => None,
    }
}

fn assistant(spec: &ModelSpec, content: &[Block]) -> Option<Value> {
    let words: String = content.iter().filter_map(text).collect();
    let calls: Vec<Value> = content.iter().filter_map(call).collect();
    if words.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    message.insert(
        "content".into(),
        if words.is_empty() {
            Value::Null
        } else {
            json!(words)
        },
    );
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    if spec.compat.replay_reasoning {
        // Under the very field it came in: templates and servers look nowhere else.
        content
            .iter()
            .filter_map(reasoning)
            .for_each(|fields| message.extend(fields));
    }
    Some(message.into())
}

fn call(block: &Block) -> Option<Value> {
    let Block::ToolUse { id, name, input } = block else {
        return None;
    };
    let function = json!({ "name": name, "arguments": arguments(input).to_string() });
    Some(json!({ "id": id, "type": "function", "function": function }))
}

fn reasoning(block: &Block) -> Option<Map<String, Value>> {
    let Block::Thinking { raw: Some(raw), .. } = block else {
        return None;
    };
    let fields: Map<String, Value> = serde_json::from_str(raw).ok()?;
    (!fields.contains_key("type")).then_some(fields)
}
