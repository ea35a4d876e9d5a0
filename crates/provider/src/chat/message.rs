//! Messages of Chat Completions.

use crate::body::Encoded;
use crate::chat::reasoning::REASONING_FIELDS;
use crate::fields::{arguments, json_bytes, wire_name};
use crate::spec::ModelSpec;
use agentd_protocol::{Block, ImageSource, Message, Role};
use serde_json::{Map, Value, json};

/// The length of the ids that Mistral requires.
const SHORT_ID: usize = 9;

/// One message: tool results become separate messages, and a user's text continues the user text before it,
/// because the templates of many local models require alternating roles.
pub(crate) fn message(spec: &ModelSpec, message: &Message, after_text: bool) -> Encoded {
    match message.role {
        Role::User => user(spec, &message.content, after_text),
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

/// Results can only carry text here, so their images follow in a user message.
fn user(spec: &ModelSpec, content: &[Block], after_text: bool) -> Encoded {
    let results: Vec<Vec<u8>> = content
        .iter()
        .filter_map(|block| tool_result(spec, block))
        .map(|value| json_bytes(&value))
        .collect();
    if spec.compat.prompt_cache {
        return marked(spec, content);
    }
    let images = spec.capabilities.images && content.iter().any(|block| matches!(block, Block::Image { .. }));
    if images {
        let parts: Vec<Value> = content.iter().filter_map(part).collect();
        let said = json_bytes(&json!({ "role": "user", "content": parts }));
        return Encoded {
            bytes: results.into_iter().chain([said]).collect::<Vec<_>>().join(&b','),
            ..Encoded::default()
        };
    }
    let texts: Vec<&str> = content.iter().filter_map(text_or_gap).collect();
    user_text(results, &texts.join("\n\n"), after_text)
}

/// The same for a server that caches at marks: content is a list of parts, since only a part can carry a mark. Texts
/// stay apart; the models that need marks accept consecutive messages of one role.
fn marked(spec: &ModelSpec, content: &[Block]) -> Encoded {
    let result = |block: &Block| {
        let mut result = tool_result(spec, block)?;
        let text = result.get_mut("content")?.take();
        *result.get_mut("content")? = json!([{ "type": "text", "text": text }]);
        Some(result)
    };
    let mut messages: Vec<Value> = content.iter().filter_map(result).collect();
    let image = |block: &Block| spec.capabilities.images && matches!(block, Block::Image { .. });
    let said = |block: &Block| {
        if image(block) {
            return part(block);
        }
        text_or_gap(block).map(|text| json!({ "type": "text", "text": text }))
    };
    let parts: Vec<Value> = content.iter().filter_map(said).collect();
    if !parts.is_empty() {
        messages.push(json!({ "role": "user", "content": parts }));
    }
    let bytes = messages.iter().map(json_bytes).collect::<Vec<_>>().join(&b',');
    // Before the brace that closes the last part; an empty text allows no mark.
    let markable = bytes.ends_with(b"}]}") && !bytes.ends_with(br#""text":""}]}"#);
    Encoded {
        markable: markable.then(|| bytes.len() - 3),
        bytes,
        ..Encoded::default()
    }
}

/// Writes the messages in `before`, then the user's text, which continues the previous message where possible.
pub(crate) fn user_text(mut before: Vec<Vec<u8>>, text: &str, after_text: bool) -> Encoded {
    if text.is_empty() {
        return Encoded {
            bytes: before.join(&b','),
            ..Encoded::default()
        };
    }
    let joins = after_text && before.is_empty();
    if joins {
        return Encoded {
            bytes: continuation(text),
            joins,
            open: true,
            ..Encoded::default()
        };
    }
    before.push(json_bytes(&json!({ "role": "user", "content": text })));
    Encoded {
        bytes: before.join(&b','),
        open: true,
        ..Encoded::default()
    }
}

/// The rest of a JSON string that is already open, up to the end of its message.
fn continuation(text: &str) -> Vec<u8> {
    let mut bytes = br"\n\n".to_vec();
    let quoted = json_bytes(&json!(text));
    bytes.extend_from_slice(quoted.get(1..).unwrap_or_default());
    bytes.push(b'}');
    bytes
}

fn tool_result(spec: &ModelSpec, block: &Block) -> Option<Value> {
    let Block::ToolResult {
        tool_use_id, content, ..
    } = block
    else {
        return None;
    };
    Some(json!({ "role": "tool", "tool_call_id": wire_id(spec, tool_use_id), "content": content }))
}

/// The id in the form that this server accepts: the same for a call and its result, also after a restart.
fn wire_id(spec: &ModelSpec, id: &str) -> String {
    let fits = id.len() == SHORT_ID && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !spec.compat.short_tool_ids || fits {
        return id.to_owned();
    }
    // FNV-1a: small and deterministic. Nine digits of base 36 hold 46 bits, plenty for one conversation.
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let mut short = String::with_capacity(SHORT_ID);
    while short.len() < SHORT_ID {
        let digit = u32::try_from(hash % 36).unwrap_or_default();
        short.extend(char::from_digit(digit, 36));
        hash /= 36;
    }
    short
}

/// A text that is not blank.
pub(crate) fn text(block: &Block) -> Option<&str> {
    let Block::Text { text } = block else { return None };
    (!text.trim().is_empty()).then_some(text)
}

/// A text, or the placeholder of an image that is not sent.
pub(crate) fn text_or_gap(block: &Block) -> Option<&str> {
    match block {
        Block::Image { .. } => Some("[image not available]"),
        other => text(other),
    }
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Image {
            media_type,
            source: ImageSource::Data(data),
        } => {
            let url = format!("data:{media_type};base64,{data}");
            Some(json!({ "type": "image_url", "image_url": { "url": url } }))
        }
        other => text_or_gap(other).map(|text| json!({ "type": "text", "text": text })),
    }
}

fn assistant(spec: &ModelSpec, content: &[Block]) -> Option<Value> {
    let words: String = content.iter().filter_map(text).collect();
    let calls: Vec<Value> = content.iter().filter_map(|block| call(spec, block)).collect();
    if words.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    let said = if words.is_empty() {
        Value::Null
    } else {
        json!(words)
    };
    message.insert("content".into(), said);
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    if spec.compat.replay_reasoning {
        // In the same field in which it arrived: templates and servers read no other.
        content
            .iter()
            .filter_map(raw_fields)
            .for_each(|fields| replay(&mut message, fields, &words));
    }
    Some(message.into())
}

fn call(spec: &ModelSpec, block: &Block) -> Option<Value> {
    let Block::ToolUse { id, name, input } = block else {
        return None;
    };
    let function = json!({ "name": wire_name(name), "arguments": arguments(input).to_string() });
    Some(json!({ "id": wire_id(spec, id), "type": "function", "function": function }))
}

fn raw_fields(block: &Block) -> Option<Map<String, Value>> {
    let Block::Thinking { raw: Some(raw), .. } = block else {
        return None;
    };
    serde_json::from_str(raw).ok()
}

/// Puts reasoning back where it was; that of other dialects has other fields and is left out.
fn replay(message: &mut Map<String, Value>, fields: Map<String, Value>, words: &str) {
    if fields.contains_key("type") {
        return;
    }
    for (name, value) in fields {
        match value {
            // Reasoning that arrived as parts of the content: the text becomes a part after it.
            Value::Array(mut parts) if name == "content" => {
                parts.extend((!words.is_empty()).then(|| json!({ "type": "text", "text": words })));
                message.insert(name, parts.into());
            }
            value if name == "reasoning_details" || REASONING_FIELDS.contains(&name.as_str()) => {
                message.insert(name, value);
            }
            _ => {}
        }
    }
}
