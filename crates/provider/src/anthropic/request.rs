//! Requests of the Messages protocol.

use crate::body::{Encoded, Params, Prompt, ToolChoice, ToolDef};
use crate::fields::{Head, arguments, close_messages, json_bytes, wire_name};
use crate::spec::ModelSpec;
use crate::thinking;
use agentd_protocol::{Block, ImageSource, Message, Role, ThinkingLevel};
use agentd_settings::ThinkingForm;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The smallest thinking budget that the API accepts.
const MIN_BUDGET: u32 = 1_024;

/// Everything before the messages, in the order in which the provider caches it.
///
/// At most four cache marks are allowed. One is at the end of what sessions share (tools and the common part of the
/// system prompt), one at the end of the system prompt; the other two belong to the history. All are marks on blocks:
/// gateways refuse or ignore the automatic mark of the provider's own API.
pub(crate) fn prefix(spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
    let mut body = Head::default();
    body.field("model", &spec.model);
    body.field("max_tokens", &limit(spec, params));
    body.field("stream", &spec.stream);
    let system = text_parts(spec, prompt);
    if !tools.is_empty() {
        let mut all: Vec<Tool<'_>> = tools.iter().map(Tool::of).collect();
        if let (true, Some(last)) = (system.is_empty(), all.last_mut()) {
            last.cache_control = mark(spec);
        }
        body.field("tools", &all);
    }
    if !system.is_empty() {
        body.field("system", &system);
    }
    body.open_array("messages").into()
}

/// The system prompt as text blocks, each with a cache mark where marks are sent.
pub(crate) fn text_parts(spec: &ModelSpec, prompt: &Prompt<'_>) -> Vec<Value> {
    let part = |text: &str| match mark(spec) {
        Some(mark) => json!({ "type": "text", "text": text, "cache_control": mark }),
        None => json!({ "type": "text", "text": text }),
    };
    prompt.parts().map(part).collect()
}

/// A cache mark, where marks are sent.
fn mark(spec: &ModelSpec) -> Option<Value> {
    spec.compat.prompt_cache.then(|| {
        if spec.cache_hour {
            json!({ "type": "ephemeral", "ttl": "1h" })
        } else {
            json!({ "type": "ephemeral" })
        }
    })
}

fn limit(spec: &ModelSpec, params: &Params<'_>) -> u32 {
    params.max_output.unwrap_or(spec.max_output).min(spec.max_output)
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

impl<'a> Tool<'a> {
    fn of(tool: &'a ToolDef) -> Self {
        Self {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.schema,
            cache_control: None,
        }
    }
}

/// Everything after the messages: what may differ between calls without invalidating the cache.
pub(crate) fn suffix(spec: &ModelSpec, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
    let mut fields = Map::new();
    let choice = tool_choice(params).filter(|_| !tools.is_empty());
    let forced = choice.is_some() && matches!(params.tool_choice, ToolChoice::Any | ToolChoice::Only(_));
    let level = thinking::level(spec);
    // A forced tool call cannot be combined with thinking.
    let thought = level
        .filter(|_| !forced)
        .and_then(|level| thinking(spec, params, level));
    let thinks = thought
        .as_ref()
        .is_some_and(|value| value.get("type") != Some(&json!("disabled")));
    fields.extend(thought.map(|value| ("thinking".to_owned(), value)));
    let output = output_config(spec, params, level);
    if !output.is_empty() {
        fields.insert("output_config".into(), output.into());
    }
    // The API refuses a temperature while thinking is on.
    let temperature = spec
        .temperature
        .filter(|_| spec.capabilities.temperature && !thinks);
    fields.extend(temperature.map(|value| ("temperature".to_owned(), json!(value))));
    fields.extend(choice.map(|value| ("tool_choice".to_owned(), value)));
    close_messages(fields)
}

fn tool_choice(params: &Params<'_>) -> Option<Value> {
    let alone = params.parallel_tools == Some(false);
    let mut choice = match params.tool_choice {
        ToolChoice::Unsaid if alone => json!({ "type": "auto" }),
        ToolChoice::Unsaid => return None,
        ToolChoice::Off => return Some(json!({ "type": "none" })),
        ToolChoice::Auto => json!({ "type": "auto" }),
        ToolChoice::Any => json!({ "type": "any" }),
        ToolChoice::Only(name) => json!({ "type": "tool", "name": name }),
    };
    if let (true, Some(map)) = (alone, choice.as_object_mut()) {
        map.insert("disable_parallel_tool_use".into(), json!(true));
    }
    Some(choice)
}

fn thinking(spec: &ModelSpec, params: &Params<'_>, level: ThinkingLevel) -> Option<Value> {
    match (spec.capabilities.thinking, level) {
        (ThinkingForm::None | ThinkingForm::Effort, _) => None,
        (_, ThinkingLevel::Off) => Some(json!({ "type": "disabled" })),
        (ThinkingForm::Adaptive, _) => Some(json!({ "type": "adaptive", "display": "summarized" })),
        (ThinkingForm::Budget | ThinkingForm::Switch, _) => {
            // The budget is part of the output limit; a quarter of the limit is left for the answer itself.
            let limit = limit(spec, params);
            let budget = thinking::tokens(level).min(limit - limit / 4).max(MIN_BUDGET);
            (budget < limit).then(|| json!({ "type": "enabled", "budget_tokens": budget }))
        }
    }
}

fn output_config(spec: &ModelSpec, params: &Params<'_>, level: Option<ThinkingLevel>) -> Map<String, Value> {
    let mut output = Map::new();
    if matches!(
        spec.capabilities.thinking,
        ThinkingForm::Adaptive | ThinkingForm::Effort
    ) {
        let effort = match level {
            None | Some(ThinkingLevel::Off) => None,
            Some(ThinkingLevel::Minimal) => Some("low"),
            Some(level) => Some(level.as_str()),
        };
        output.extend(effort.map(|effort| ("effort".to_owned(), json!(effort))));
    }
    if let (true, Some((_, schema))) = (spec.capabilities.structured_output, params.schema) {
        output.insert(
            "format".into(),
            json!({ "type": "json_schema", "schema": schema }),
        );
    }
    output
}

/// One message. This API accepts consecutive messages of the same role.
pub(crate) fn message(spec: &ModelSpec, message: &Message) -> Encoded {
    let content = blocks(spec, &message.content);
    if content.is_empty() {
        return Encoded::default();
    }
    let (head, user): (&[u8], bool) = match message.role {
        Role::User => (br#"{"role":"user","content":["#, true),
        Role::Assistant => (br#"{"role":"assistant","content":["#, false),
    };
    let bytes = [head, &content.join(&b','), b"]}"].concat();
    // Before the brace that closes the last block. Answers get no mark: they may end in a block that allows none.
    let markable = (user && spec.compat.prompt_cache).then(|| bytes.len().saturating_sub(3));
    Encoded {
        bytes,
        markable,
        ..Encoded::default()
    }
}

/// Results come first, and an image after a result becomes part of it: the API allows nothing between two results.
fn blocks(spec: &ModelSpec, content: &[Block]) -> Vec<Vec<u8>> {
    let (mut results, mut rest): (Vec<Value>, Vec<Vec<u8>>) = Default::default();
    let mut after_result = false;
    for block in content {
        match block {
            Block::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => {
                // The API refuses a failed result without text.
                let content = match content.as_str() {
                    "" if *is_error => "[failed without a message]",
                    content => content,
                };
                results.push(json!({ "type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": is_error }));
                after_result = true;
            }
            Block::Image { .. } if after_result => put_into(results.last_mut(), image(spec, block)),
            _ => {
                after_result = false;
                rest.extend(encode(spec, block));
            }
        }
    }
    results.iter().map(json_bytes).chain(rest).collect()
}

fn put_into(result: Option<&mut Value>, image: Option<Value>) {
    let Some(content) = result.and_then(|result| result.get_mut("content")) else {
        return;
    };
    if let Value::String(text) = content {
        // The API refuses an empty text block.
        let text = Some(std::mem::take(text)).filter(|text| !text.is_empty());
        *content = text
            .iter()
            .map(|text| json!({ "type": "text", "text": text }))
            .collect();
    }
    if let Value::Array(parts) = content {
        parts.extend(image);
    }
}

fn image(spec: &ModelSpec, block: &Block) -> Option<Value> {
    match block {
        Block::Image {
            media_type,
            source: ImageSource::Data(data),
        } if spec.capabilities.images => Some(
            json!({ "type": "image", "source": { "type": "base64", "media_type": media_type, "data": data } }),
        ),
        Block::Image { .. } => Some(json!({ "type": "text", "text": "[image not available]" })),
        _ => None,
    }
}

fn encode(spec: &ModelSpec, block: &Block) -> Option<Vec<u8>> {
    let value = match block {
        Block::Text { text } if text.trim().is_empty() => return None,
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::Image { .. } => image(spec, block)?,
        // Signed by the provider: it goes back byte for byte, or not at all if another dialect made it or the server
        // has refused it.
        Block::Thinking { raw, .. } => {
            return raw
                .as_ref()
                .filter(|raw| is_own(raw) && (spec.compat.replay_reasoning || !is_thought(raw)))
                .map(|raw| raw.clone().into_bytes());
        }
        Block::ToolUse { id, name, input } => {
            json!({ "type": "tool_use", "id": id, "name": wire_name(name), "input": arguments(input) })
        }
        Block::ToolResult { .. } | Block::Unknown => return None,
    };
    Some(json_bytes(&value))
}

/// Replays blocks of unknown newer kinds, too, but not those of the one other dialect whose blocks have a type.
fn is_own(raw: &str) -> bool {
    kind(raw).is_some_and(|kind| {
        !matches!(kind.as_str(), "reasoning" | "message")
            && !kind.ends_with("_call")
            && !kind.ends_with("_output")
    })
}

fn is_thought(raw: &str) -> bool {
    kind(raw).is_some_and(|kind| kind.ends_with("thinking"))
}

fn kind(raw: &str) -> Option<String> {
    let value: Value = serde_json::from_str(raw).ok()?;
    value.get("type").and_then(Value::as_str).map(str::to_owned)
}
