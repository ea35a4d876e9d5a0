//! Requests of the Responses protocol.

use crate::body::{Encoded, Params, Prompt, ToolChoice, ToolDef};
use crate::fields::{Head, arguments, close_messages, json_bytes, text, wire_name};
use crate::responses::items::is_own;
use crate::spec::{ModelSpec, is_openai};
use crate::thinking;
use agentd_protocol::{Block, ImageSource, Message, Role, ThinkingLevel};
use agentd_settings::ThinkingForm;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The smallest output limit that the protocol accepts.
const MIN_OUTPUT: u32 = 16;

/// The placeholder of an image that cannot be sent.
const NO_IMAGE: &str = "[image not available]";

/// Everything before the messages: only what is constant for a whole session.
pub(crate) fn prefix(spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef]) -> Bytes {
    let mut body = Head::default();
    body.field("model", &spec.model);
    body.field("store", &false);
    body.field("stream", &spec.stream);
    // Models without reasoning refuse these fields.
    if spec.capabilities.thinking != ThinkingForm::None {
        body.field("include", &["reasoning.encrypted_content"]);
    }
    // Some other servers ignore or refuse `instructions`; all understand a message.
    let as_field = is_openai(&spec.base_url);
    let system = prompt.text();
    if as_field && !system.is_empty() {
        body.field("instructions", &system);
    }
    if !tools.is_empty() {
        body.field("tools", &tools.iter().map(Tool::of).collect::<Vec<_>>());
    }
    let mut bytes = body.open_array("input");
    if !as_field && !system.is_empty() {
        let role = if spec.compat.developer_role {
            "developer"
        } else {
            "system"
        };
        let part = json!({ "type": "input_text", "text": system });
        bytes.extend(json_bytes(&words(role, &json!([part]))));
    }
    bytes.into()
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// If it were absent, the schema would have to list every property as required.
    strict: bool,
}

impl<'a> Tool<'a> {
    fn of(tool: &'a ToolDef) -> Self {
        Self {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.schema,
            strict: false,
        }
    }
}

/// Everything after the messages.
pub(crate) fn suffix(spec: &ModelSpec, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
    let limit = params.max_output.unwrap_or(spec.max_output).min(spec.max_output);
    let mut fields = Map::new();
    fields.insert("max_output_tokens".into(), json!(limit.max(MIN_OUTPUT)));
    if let Some(temperature) = spec.temperature {
        fields.insert("temperature".into(), json!(temperature));
    }
    if let Some(level) = thinking::level(spec) {
        fields.insert("reasoning".into(), reasoning(level));
    }
    if !tools.is_empty() {
        if let Some(choice) = tool_choice(params.tool_choice).filter(|_| spec.compat.tool_choice) {
            fields.insert("tool_choice".into(), choice);
        }
        if let Some(parallel) = params.parallel_tools {
            fields.insert("parallel_tool_calls".into(), json!(parallel));
        }
    }
    if let Some((name, schema)) = params.schema.filter(|_| spec.capabilities.structured_output) {
        let strict = is_strict(schema);
        let format = json!({ "type": "json_schema", "name": name, "schema": schema, "strict": strict });
        fields.insert("text".into(), json!({ "format": format }));
    }
    let caches = spec.compat.prompt_cache || is_openai(&spec.base_url);
    if caches && !params.cache_key.is_empty() {
        fields.insert("prompt_cache_key".into(), json!(params.cache_key));
    }
    close_messages(fields)
}

fn reasoning(level: ThinkingLevel) -> Value {
    let effort = match level {
        ThinkingLevel::Off => return json!({ "effort": "none" }),
        ThinkingLevel::Minimal => "minimal",
        ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High => "high",
        ThinkingLevel::Max => "xhigh",
    };
    json!({ "effort": effort, "summary": "auto" })
}

fn tool_choice(choice: ToolChoice<'_>) -> Option<Value> {
    match choice {
        ToolChoice::Unsaid => None,
        ToolChoice::Auto => Some(json!("auto")),
        ToolChoice::Off => Some(json!("none")),
        ToolChoice::Any => Some(json!("required")),
        ToolChoice::Only(name) => Some(json!({ "type": "function", "name": name })),
    }
}

/// Whether strict decoding accepts a schema: closed objects that require all their properties.
fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let has = |key: &str| fields.get(key).and_then(Value::as_object);
            let closed = match has("properties") {
                Some(properties) => {
                    let required = fields.get("required").and_then(Value::as_array);
                    let requires = |name: &String| {
                        required.is_some_and(|names| names.iter().any(|known| known == name.as_str()))
                    };
                    fields.get("additionalProperties") == Some(&json!(false))
                        && properties.keys().all(requires)
                }
                None => fields.get("type") != Some(&json!("object")),
            };
            closed && fields.values().all(is_strict)
        }
        Value::Array(values) => values.iter().all(is_strict),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// One message as items, in its own order; results precede the rest of a user's message.
pub(crate) fn message(spec: &ModelSpec, message: &Message) -> Encoded {
    let items = match message.role {
        Role::User => user(spec, &message.content),
        Role::Assistant => assistant(spec, &message.content),
    };
    Encoded {
        bytes: items.join(&b','),
        ..Encoded::default()
    }
}

fn user(spec: &ModelSpec, content: &[Block]) -> Vec<Vec<u8>> {
    let mut items: Vec<Vec<u8>> = content.iter().filter_map(result).collect();
    let parts: Vec<Value> = content.iter().filter_map(|block| part(spec, block)).collect();
    if !parts.is_empty() {
        items.push(json_bytes(&words("user", &parts.into())));
    }
    items
}

fn words(role: &str, content: &Value) -> Value {
    json!({ "type": "message", "role": role, "content": content })
}

fn result(block: &Block) -> Option<Vec<u8>> {
    let Block::ToolResult {
        tool_use_id, content, ..
    } = block
    else {
        return None;
    };
    let item = json!({ "type": "function_call_output", "call_id": tool_use_id, "output": content });
    Some(json_bytes(&item))
}

fn part(spec: &ModelSpec, block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } if text.trim().is_empty() => None,
        Block::Text { text } => Some(json!({ "type": "input_text", "text": text })),
        Block::Image {
            media_type,
            source: ImageSource::Data(data),
        } if spec.capabilities.images => {
            let url = format!("data:{media_type};base64,{data}");
            Some(json!({ "type": "input_image", "detail": "auto", "image_url": url }))
        }
        Block::Image { .. } => Some(json!({ "type": "input_text", "text": NO_IMAGE })),
        Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Unknown => None,
    }
}

fn assistant(spec: &ModelSpec, content: &[Block]) -> Vec<Vec<u8>> {
    let (mut items, mut spoken) = (Vec::new(), false);
    // The phase of a message precedes its text.
    let mut phase = Value::Null;
    for block in content {
        match block {
            Block::Text { text } if !text.trim().is_empty() => {
                let mut item = words("assistant", &json!([{ "type": "output_text", "text": text }]));
                if let (Some(item), false) = (item.as_object_mut(), phase.is_null()) {
                    item.insert("phase".into(), phase.take());
                }
                items.push(json_bytes(&item));
                spoken = true;
            }
            Block::ToolUse { id, name, input } => {
                let arguments = arguments(input).to_string();
                let name = wire_name(name);
                let item =
                    json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments });
                items.push(json_bytes(&item));
                spoken = true;
            }
            Block::Thinking { raw: Some(raw), .. } => match replayed(spec, raw) {
                Some(Replay::Phase(found)) => phase = found,
                Some(Replay::Reasoning) => items.push(raw.clone().into_bytes()),
                Some(Replay::Item) => {
                    items.push(raw.clone().into_bytes());
                    spoken = true;
                }
                None => {}
            },
            Block::Text { .. }
            | Block::Image { .. }
            | Block::Thinking { .. }
            | Block::ToolResult { .. }
            | Block::Unknown => {}
        }
    }
    // The server refuses reasoning that nothing follows, as in an answer that was cut off.
    if spoken { items } else { Vec::new() }
}

/// The meaning of an opaque item.
enum Replay {
    /// The phase of the message whose text follows.
    Phase(Value),
    /// Reasoning that belongs to the item after it.
    Reasoning,
    /// An item of an unknown kind.
    Item,
}

fn replayed(spec: &ModelSpec, raw: &str) -> Option<Replay> {
    let mut item: Value = serde_json::from_str(raw).ok().filter(is_own)?;
    match text(&item, "type") {
        "message" => item.get_mut("phase").map(|phase| Replay::Phase(phase.take())),
        "reasoning" => {
            // Without its content, the item is only a reference to something that the server did not store.
            let kept = !text(&item, "encrypted_content").is_empty() || !is_openai(&spec.base_url);
            (kept && spec.compat.replay_reasoning).then_some(Replay::Reasoning)
        }
        _ => Some(Replay::Item),
    }
}
