//! Requests of Chat Completions.

use crate::anthropic::request::text_parts;
use crate::body::{Params, Prompt, ToolChoice, ToolDef};
use crate::fields::{Head, close_messages, json_bytes};
use crate::spec::{ModelSpec, is_openai};
use crate::thinking;
use agentd_protocol::ThinkingLevel;
use agentd_settings::ThinkingSwitch;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The depth to which schemas are checked.
const SCHEMA_DEPTH: u32 = 16;

/// Everything before the messages, including the system message.
pub(crate) fn prefix(spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
    let limit = params.max_output.unwrap_or(spec.max_output).min(spec.max_output);
    let limit_name = if spec.compat.max_completion_tokens {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    let mut body = Head::default();
    body.field("model", &spec.model);
    body.field("stream", &spec.stream);
    if spec.stream && spec.compat.usage_in_stream {
        body.field("stream_options", &json!({ "include_usage": true }));
    }
    body.field(limit_name, &limit);
    if !tools.is_empty() {
        body.field("tools", &Tool::all(tools));
    }
    let mut bytes = body.open_array("messages");
    bytes.extend(system(spec, prompt));
    bytes.into()
}

/// The system message; empty without a system prompt.
pub(crate) fn system(spec: &ModelSpec, prompt: &Prompt<'_>) -> Vec<u8> {
    let text = prompt.text();
    if text.is_empty() {
        return Vec::new();
    }
    let role = if spec.compat.developer_role {
        "developer"
    } else {
        "system"
    };
    if spec.compat.prompt_cache {
        return json_bytes(&json!({ "role": role, "content": text_parts(spec, prompt) }));
    }
    json_bytes(&json!({ "role": role, "content": text }))
}

/// A tool in OpenAI's format, which most servers have adopted.
#[derive(Serialize)]
pub(crate) struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> Tool<'a> {
    pub(crate) fn all(tools: &'a [ToolDef]) -> Vec<Self> {
        let of = |tool: &'a ToolDef| Self {
            r#type: "function",
            function: Function {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.schema,
            },
        };
        tools.iter().map(of).collect()
    }
}

/// Everything after the messages.
pub(crate) fn suffix(spec: &ModelSpec, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
    let mut fields = Map::new();
    if !tools.is_empty() {
        let choice = tool_choice(params.tool_choice).filter(|_| spec.compat.tool_choice);
        fields.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
        let parallel = params.parallel_tools.filter(|_| spec.compat.tool_choice);
        fields.extend(parallel.map(|parallel| ("parallel_tool_calls".to_owned(), json!(parallel))));
    }
    if let (true, Some((name, schema))) = (spec.capabilities.structured_output, params.schema) {
        let strict = is_closed(schema, SCHEMA_DEPTH);
        let schema = json!({ "name": name, "schema": schema, "strict": strict });
        fields.insert(
            "response_format".into(),
            json!({ "type": "json_schema", "json_schema": schema }),
        );
    }
    let temperature = spec.temperature.filter(|_| spec.capabilities.temperature);
    fields.extend(temperature.map(|value| ("temperature".to_owned(), json!(value))));
    fields.extend(thinking::level(spec).and_then(|level| switch(spec.compat.thinking, level)));
    if !params.cache_key.is_empty() && is_openai(&spec.base_url) {
        fields.insert("prompt_cache_key".into(), json!(params.cache_key));
    }
    close_messages(fields)
}

fn tool_choice(choice: ToolChoice<'_>) -> Option<Value> {
    Some(match choice {
        ToolChoice::Unsaid => return None,
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Off => json!("none"),
        ToolChoice::Any => json!("required"),
        ToolChoice::Only(name) => json!({ "type": "function", "function": { "name": name } }),
    })
}

/// Strict decoding refuses open schemas: every object must list all its properties as required, and allow no others.
fn is_closed(schema: &Value, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    let closed = |value: &Value| is_closed(value, depth);
    match schema {
        Value::Object(map) => {
            let is_object =
                map.get("type").is_some_and(|kind| kind == "object") || map.contains_key("properties");
            let named = map.get("properties").and_then(Value::as_object);
            let required = map.get("required").and_then(Value::as_array);
            let all = named.is_none_or(|named| {
                named
                    .keys()
                    .all(|name| required.is_some_and(|required| required.iter().any(|one| one == name)))
            });
            let shut = !is_object || (all && map.get("additionalProperties") == Some(&Value::Bool(false)));
            shut && named.is_none_or(|named| named.values().all(closed))
                && map
                    .iter()
                    .filter(|(key, _)| *key != "properties")
                    .all(|(_, value)| closed(value))
        }
        Value::Array(items) => items.iter().all(closed),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn switch(switch: ThinkingSwitch, level: ThinkingLevel) -> Option<(String, Value)> {
    let on = level != ThinkingLevel::Off;
    let (name, value) = match switch {
        ThinkingSwitch::None => return None,
        ThinkingSwitch::ReasoningEffort => ("reasoning_effort", json!(effort(level))),
        ThinkingSwitch::Reasoning => ("reasoning", json!({ "effort": effort(level) })),
        ThinkingSwitch::Thinking => {
            let kind = if on { "enabled" } else { "disabled" };
            ("thinking", json!({ "type": kind }))
        }
        ThinkingSwitch::EnableThinking => ("enable_thinking", json!(on)),
        ThinkingSwitch::ChatTemplate => ("chat_template_kwargs", json!({ "enable_thinking": on })),
    };
    Some((name.to_owned(), value))
}

const fn effort(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off => "none",
        ThinkingLevel::Max => "xhigh",
        level => level.as_str(),
    }
}
