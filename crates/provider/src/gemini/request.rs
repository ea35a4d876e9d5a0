//! Requests of Gemini.

use crate::body::{Encoded, Prompt, ToolDef};
use crate::fields::{Head, arguments, json_bytes, wire_name};
use crate::gemini::config::is_third;
use crate::gemini::replay::{Closed, Mark, read, signed_nothing};
use crate::spec::ModelSpec;
use agentd_protocol::{Block, ImageSource, Message, Role};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The placeholder of an image that cannot be sent.
const NO_IMAGE: &str = "[image not available]";

/// Everything before the messages.
pub(crate) fn prefix(prompt: &Prompt<'_>, tools: &[ToolDef]) -> Bytes {
    let mut body = Head::default();
    let system = prompt.text();
    if !system.is_empty() {
        body.field("systemInstruction", &json!({ "parts": [{ "text": system }] }));
    }
    if !tools.is_empty() {
        let declared = tools.iter().map(Tool::of).collect();
        body.field("tools", &[Tools { declared }]);
    }
    body.open_array("contents").into()
}

#[derive(Serialize)]
struct Tools<'a> {
    #[serde(rename = "functionDeclarations")]
    declared: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(rename = "parametersJsonSchema")]
    schema: &'a Value,
}

impl<'a> Tool<'a> {
    fn of(tool: &'a ToolDef) -> Self {
        Self {
            name: &tool.name,
            description: &tool.description,
            schema: &tool.schema,
        }
    }
}

/// One message. `asked` is the last answer with tool calls: results repeat the names of their calls.
pub(crate) fn message(spec: &ModelSpec, message: &Message, asked: Option<&Message>) -> Encoded {
    let (parts, mut bytes) = match message.role {
        Role::User => (
            user(spec, &message.content, asked),
            br#"{"role":"user","parts":["#.to_vec(),
        ),
        Role::Assistant => (
            model(spec, &message.content),
            br#"{"role":"model","parts":["#.to_vec(),
        ),
    };
    if parts.is_empty() {
        return Encoded::default();
    }
    bytes.extend(parts.join(&b','));
    bytes.extend_from_slice(b"]}");
    Encoded {
        bytes,
        ..Encoded::default()
    }
}

/// Results come first, in the order of their calls.
fn user(spec: &ModelSpec, content: &[Block], asked: Option<&Message>) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    if content
        .iter()
        .any(|block| matches!(block, Block::ToolResult { .. }))
    {
        let calls = calls(
            asked
                .map(|message| message.content.as_slice())
                .unwrap_or_default(),
        );
        parts.extend(content.iter().filter_map(|block| result(block, &calls)));
    }
    parts.extend(content.iter().filter_map(|block| said(spec, block)));
    parts.iter().map(json_bytes).collect()
}

/// The name and the provider's id of each call, by our id.
type Calls<'a> = BTreeMap<&'a str, (&'a str, Option<String>)>;

fn calls(content: &[Block]) -> Calls<'_> {
    let mut calls = Calls::new();
    let mut mark = Mark::default();
    for block in content {
        match block {
            Block::Thinking { raw: Some(raw), .. } => {
                if let Some(Closed::Mark(found)) = read(raw) {
                    mark = found;
                }
            }
            Block::ToolUse { id, name, .. } => {
                calls.insert(id, (name, std::mem::take(&mut mark).id));
            }
            Block::Text { .. }
            | Block::Image { .. }
            | Block::Thinking { .. }
            | Block::ToolResult { .. }
            | Block::Unknown => {}
        }
    }
    calls
}

/// Adapts a name that a model made up: here, a function's name must begin with a letter or an underscore.
fn function(name: &str) -> String {
    let name = wire_name(name);
    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name
    } else {
        format!("_{name}")
    }
}

fn result(block: &Block, calls: &Calls<'_>) -> Option<Value> {
    let Block::ToolResult {
        tool_use_id,
        content,
        is_error,
    } = block
    else {
        return None;
    };
    let (name, id) = match calls.get(tool_use_id.as_str()) {
        Some((name, id)) => (*name, id.as_deref()),
        None => ("unknown", None),
    };
    let key = if *is_error { "error" } else { "output" };
    let mut part = json!({ "functionResponse": { "name": function(name), "response": { key: content } } });
    if let (Some(id), Some(fields)) = (
        id,
        part.get_mut("functionResponse").and_then(Value::as_object_mut),
    ) {
        fields.insert("id".to_owned(), json!(id));
    }
    Some(part)
}

fn said(spec: &ModelSpec, block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } if text.trim().is_empty() => None,
        Block::Text { text } => Some(json!({ "text": text })),
        Block::Image {
            media_type,
            source: ImageSource::Data(data),
        } if spec.capabilities.images => {
            Some(json!({ "inlineData": { "mimeType": media_type, "data": data } }))
        }
        Block::Image { .. } => Some(json!({ "text": NO_IMAGE })),
        Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Unknown => None,
    }
}

fn model(spec: &ModelSpec, content: &[Block]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut pending = Mark::default();
    let mut unsigned = is_third(&spec.model);
    for block in content {
        match block {
            Block::Thinking { raw: Some(raw), .. } => {
                flush(&mut pending, &mut parts);
                match read(raw) {
                    Some(Closed::Mark(mut mark)) => {
                        // The id of a call is kept, even where signatures are not replayed.
                        mark.signature = mark.signature.filter(|_| spec.compat.replay_reasoning);
                        pending = mark;
                    }
                    Some(Closed::Part) if spec.compat.replay_reasoning => {
                        parts.push(raw.clone().into_bytes());
                    }
                    Some(Closed::Part) | None => {}
                }
            }
            Block::Text { text } if !text.trim().is_empty() || pending.signature.is_some() => {
                let mut part = json!({ "text": text });
                std::mem::take(&mut pending).put_on(&mut part);
                parts.push(json_bytes(&part));
            }
            Block::ToolUse { name, input, .. } => {
                let mut mark = std::mem::take(&mut pending);
                if std::mem::take(&mut unsigned) {
                    mark = mark.signed();
                }
                let mut part =
                    json!({ "functionCall": { "name": function(name), "args": arguments(input) } });
                mark.put_on(&mut part);
                parts.push(json_bytes(&part));
            }
            Block::Text { .. }
            | Block::Image { .. }
            | Block::Thinking { .. }
            | Block::ToolResult { .. }
            | Block::Unknown => {}
        }
    }
    flush(&mut pending, &mut parts);
    parts
}

/// A signature whose text is gone goes back on an empty text part.
fn flush(pending: &mut Mark, parts: &mut Vec<Vec<u8>>) {
    let mark = std::mem::take(pending);
    if let (Some(signature), false) = (mark.signature, mark.call) {
        parts.push(json_bytes(&signed_nothing(&signature)));
    }
}
