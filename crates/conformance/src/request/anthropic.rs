//! Requests of the Messages protocol.

use super::ids::Ids;
use super::{Asked, Choice, Unfit, unknown_part};
use crate::json::{drain, field, items, joined, set, take, text};
use agentd_protocol::{Block, ImageSource, Message, Role, ThinkingLevel};
use agentd_provider::{Dialect, ToolDef};
use agentd_settings::ThinkingForm;
use serde_json::{Value, json};

/// The smallest thinking budget that the protocol allows.
const MIN_BUDGET: u32 = 1_024;

/// Reads a recorded body.
pub(super) fn read(body: &Value) -> Result<Asked, Unfit> {
    let mut asked = Asked::of(Dialect::Anthropic, body);
    asked.limit(body.get("max_tokens"));
    asked.system = joined(body.get("system").unwrap_or(&Value::Null), "\n\n");
    for tool in items(body, "tools") {
        asked.tools.push(tool_def(tool)?);
    }
    let choice = body.get("tool_choice").unwrap_or(&Value::Null);
    asked.choice = match text(choice, "type") {
        "" => Choice::Unsaid,
        "auto" => Choice::Auto,
        "any" => Choice::Any,
        "none" => Choice::Off,
        _ => Choice::Only(text(choice, "name").to_owned()),
    };
    let single = choice.get("disable_parallel_tool_use").and_then(Value::as_bool);
    asked.parallel = single.map(|single| !single);
    thinking(&mut asked, body)?;
    if let Some(schema) = body.pointer("/output_config/format/schema") {
        asked.schema = Some(("answer".to_owned(), schema.clone()));
    }
    for message in items(body, "messages") {
        let role = match text(message, "role") {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            other => return Err(Unfit::skip(format!("a message of the role {other}"))),
        };
        let content = match message.get("content") {
            Some(Value::String(text)) => vec![Block::text(text)],
            _ => items(message, "content")
                .map(|part| block(part, role))
                .collect::<Result<_, _>>()?,
        };
        asked.say(Message { role, content });
    }
    Ok(asked)
}

fn tool_def(tool: &Value) -> Result<ToolDef, Unfit> {
    if !matches!(text(tool, "type"), "" | "custom") {
        return Err(Unfit::skip("a tool that the provider runs"));
    }
    Ok(ToolDef {
        name: text(tool, "name").to_owned(),
        description: text(tool, "description").to_owned(),
        schema: tool.get("input_schema").cloned().unwrap_or_default().into(),
    })
}

fn thinking(asked: &mut Asked, body: &Value) -> Result<(), Unfit> {
    let thinking = body.get("thinking").unwrap_or(&Value::Null);
    let effort = body.pointer("/output_config/effort").and_then(Value::as_str);
    let level = effort.map(super::level).transpose()?;
    let (form, level) = match text(thinking, "type") {
        "" => (ThinkingForm::Effort, level),
        "disabled" => (ThinkingForm::Adaptive, Some(ThinkingLevel::Off)),
        "adaptive" => (ThinkingForm::Adaptive, Some(level.unwrap_or(ThinkingLevel::High))),
        // The smallest budget is below every limit of the answer.
        "enabled" => (ThinkingForm::Budget, Some(ThinkingLevel::Minimal)),
        other => return Err(Unfit::skip(format!("thinking of type {other}"))),
    };
    let thinks =
        matches!(form, ThinkingForm::Adaptive | ThinkingForm::Budget) && level != Some(ThinkingLevel::Off);
    if level.is_some() && thinks {
        if matches!(asked.choice, Choice::Any | Choice::Only(_)) {
            return Err(Unfit::skip(
                "thinking before a call that is forced, which is refused",
            ));
        }
        if asked
            .spec
            .temperature
            .is_some_and(|temperature| temperature < 1.0)
        {
            return Err(Unfit::skip("thinking with a temperature, which is refused"));
        }
        if form == ThinkingForm::Budget && asked.spec.max_output <= MIN_BUDGET {
            return Err(Unfit::skip(
                "a thinking budget larger than the answer, which is refused",
            ));
        }
    }
    asked.spec.thinking = level;
    asked.spec.capabilities.thinking = if level.is_some() { form } else { ThinkingForm::None };
    Ok(())
}

fn block(part: &Value, role: Role) -> Result<Block, Unfit> {
    let source = part.get("source").unwrap_or(&Value::Null);
    Ok(match text(part, "type") {
        "text" => Block::text(text(part, "text")),
        "image" if text(source, "type") == "base64" => Block::Image {
            media_type: text(source, "media_type").to_owned(),
            source: ImageSource::Data(text(source, "data").to_owned()),
        },
        "image" => return Err(Unfit::skip("an image by its address")),
        "tool_use" => Block::ToolUse {
            id: text(part, "id").to_owned(),
            name: text(part, "name").to_owned(),
            input: part.get("input").cloned().unwrap_or_default(),
        },
        "tool_result" => {
            if let Some(other) = items(part, "content").find(|inner| text(inner, "type") != "text") {
                return Err(Unfit::skip(format!("{} in a tool result", text(other, "type"))));
            }
            Block::ToolResult {
                tool_use_id: text(part, "tool_use_id").to_owned(),
                content: joined(part.get("content").unwrap_or(&Value::Null), "\n"),
                is_error: part.get("is_error").and_then(Value::as_bool).unwrap_or_default(),
            }
        }
        // The provider's own blocks are sent back unchanged.
        _ if role == Role::Assistant => Block::Thinking {
            text: text(part, "thinking").to_owned(),
            raw: Some(part.to_string()),
        },
        _ => return Err(unknown_part(part)),
    })
}

/// Normalises a body: lists of texts become one text, and optional forms become one form.
pub(super) fn normal(body: &mut Value) {
    if let Some(system) = take(body, "system").filter(|system| !joined(system, "").is_empty()) {
        set(body, "system", joined(&system, "\n\n").into());
    }
    if body.get("stream") == Some(&Value::Bool(false)) {
        take(body, "stream");
    }
    if body.get("tools").is_none() {
        take(body, "tool_choice");
    }
    // With thinking on, this temperature is the default anyway.
    let thinks = body
        .get("thinking")
        .is_some_and(|thinking| text(thinking, "type") != "disabled");
    if thinks && body.get("temperature").and_then(Value::as_f64) == Some(1.0) {
        take(body, "temperature");
    }
    // The highest level has two names.
    if let Some(effort) = body
        .pointer_mut("/output_config/effort")
        .filter(|effort| *effort == "xhigh")
    {
        *effort = json!("max");
    }
    if let Some(choice) = field(body, "tool_choice")
        && choice.get("disable_parallel_tool_use") == Some(&json!(false))
    {
        take(choice, "disable_parallel_tool_use");
    }
    for tool in field(body, "tools")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        take(tool, "type");
    }
    let mut ids = Ids::default();
    let mut messages = drain(body, "messages");
    for message in &mut messages {
        let parts = match take(message, "content") {
            Some(Value::String(text)) => vec![json!({ "type": "text", "text": text })],
            Some(Value::Array(parts)) => parts,
            _ => Vec::new(),
        };
        let parts = parts.into_iter().filter_map(|part| normal_part(part, &mut ids));
        set(message, "content", parts.collect());
    }
    messages.retain(|message| items(message, "content").next().is_some());
    set(body, "messages", messages.into());
}

fn normal_part(mut part: Value, ids: &mut Ids) -> Option<Value> {
    match text(&part, "type") {
        "text" if text(&part, "text").trim().is_empty() => return None,
        "tool_use" => ids.number(&mut part, "id"),
        "tool_result" => {
            ids.number(&mut part, "tool_use_id");
            let content = joined(part.get("content").unwrap_or(&Value::Null), "\n");
            set(&mut part, "content", content.into());
            if part.get("is_error") == Some(&Value::Bool(false)) {
                take(&mut part, "is_error");
            }
        }
        _ => {}
    }
    Some(part)
}
