//! Requests of the Messages protocol.

use crate::body::{Encoded, Params, Prompt, ToolDef};
use crate::fields::{arguments, json_bytes};
use crate::spec::ModelSpec;
use agentd_protocol::{Block, ImageSource, Message, Role};
use bytes::Bytes;
use serde_json::{Value, json};

/// Everything before the messages: the order is the one in which the provider caches.
pub(crate) fn prefix(spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], params: &Params) -> Bytes {
    let limit = params.max_output.unwrap_or(spec.max_output).min(spec.max_output);
    let mut body = json!({ "model": spec.model, "max_tokens": limit, "stream": true });
    if spec.compat.prompt_cache {
        set(&mut body, "cache_control", json!({ "type": "ephemeral" }));
    }
    if !tools.is_empty() {
        set(&mut body, "tools", tools.iter().map(tool).collect());
    }
    if !prompt.system.is_empty() {
        let mut block = json!({ "type": "text", "text": prompt.system });
        if spec.compat.prompt_cache {
            set(&mut block, "cache_control", json!({ "type": "ephemeral" }));
        }
        set(&mut body, "system", json!([block]));
    }
    let mut bytes = json_bytes(&body);
    bytes.pop();
    bytes.extend_from_slice(br#","messages":["#);
    bytes.into()
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

fn tool(tool: &ToolDef) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema })
}

/// One message. Consecutive messages of one role are fine here.
pub(crate) fn message(_: &ModelSpec, message: &Message) -> Encoded {
    let content: Vec<Vec<u8>> = message.content.iter().filter_map(block).collect();
    if content.is_empty() {
        return Encoded::default();
    }
    let mut bytes: Vec<u8> = match message.role {
        Role::User => br#"{"role":"user","content":["#.to_vec(),
        Role::Assistant => br#"{"role":"assistant","content":["#.to_vec(),
    };
    bytes.extend(content.join(&b','));
    bytes.extend_from_slice(b"]}");
    Encoded {
        bytes,
        ..Encoded::default()
    }
}

fn block(block: &Block) -> Option<Vec<u8>> {
    let value = match block {
        Block::Text { text } if text.trim().is_empty() => return None,
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::Image {
            media_type,
            source: ImageSource::Data(data),
        } => {
            json!({ "type": "image", "source": { "type": "base64", "media_type": media_type, "data": data } })
        }
        Block::Image { .. } => json!({ "type": "text", "text": "[image not available]" }),
        // Signed by the provider: it goes back byte for byte, or not at all when another dialect made it.
        Block::Thinking { raw, .. } => {
            return raw
                .as_ref()
                .filter(|raw| is_own(raw))
                .map(|raw| raw.clone().into_bytes());
        }
        Block::ToolUse { id, name, input } => {
            json!({ "type": "tool_use", "id": id, "name": name, "input": arguments(input) })
        }
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => {
            json!({ "type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": is_error })
        }
        Block::Unknown => return None,
    };
    Some(json_bytes(&value))
}

fn is_own(raw: &str) -> bool {
    serde_json::from_str::<Value>(raw).is_ok_and(|value| value.get("type").is_some())
}
