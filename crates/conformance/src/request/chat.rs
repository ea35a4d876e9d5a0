//! Requests of Chat Completions, in the variants of all its servers.

mod normal;

use super::{Asked, Choice, Unfit, level, unknown_part};
use crate::json::{has, items, joined, text};
use agentd_protocol::{Block, ImageSource, Message, Role, ThinkingLevel};
use agentd_provider::{Dialect, ToolDef};
use agentd_settings::{ThinkingForm, ThinkingSwitch};
use serde_json::{Map, Value};

pub(super) use normal::{normal, object, parsed};

/// Fields of an answer that are sent back unchanged.
const REASONING: [&str; 4] = [
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "reasoning_details",
];

/// Features that we never request, with their names.
const NEVER: [(&str, &str); 4] = [
    ("functions", "functions of the time before tools"),
    ("function_call", "functions of the time before tools"),
    ("audio", "audio"),
    ("prediction", "a predicted answer"),
];

/// Reads a recorded body.
pub(super) fn read(body: &Value) -> Result<Asked, Unfit> {
    if let Some((_, what)) = NEVER.iter().find(|(key, _)| body.get(*key).is_some()) {
        return Err(Unfit::skip(*what));
    }
    if body.get("n").and_then(Value::as_u64).is_some_and(|n| n > 1) {
        return Err(Unfit::skip("n > 1: several answers to one request"));
    }
    let mut asked = Asked::of(Dialect::OpenaiChat, body);
    asked.limit(
        body.get("max_completion_tokens")
            .or_else(|| body.get("max_tokens")),
    );
    asked.spec.compat.max_completion_tokens = has(body, "max_completion_tokens");
    asked.parallel = body.get("parallel_tool_calls").and_then(Value::as_bool);
    for tool in items(body, "tools") {
        asked.tools.push(tool_def(tool)?);
    }
    asked.choice = choice(body.get("tool_choice"))?;
    format(&mut asked, body)?;
    thinking(&mut asked, body)?;
    messages(&mut asked, body)?;
    Ok(asked)
}

fn tool_def(tool: &Value) -> Result<ToolDef, Unfit> {
    let Some(function) = tool.get("function") else {
        return Err(Unfit::skip("a tool that the provider runs"));
    };
    Ok(ToolDef {
        name: text(function, "name").to_owned(),
        description: text(function, "description").to_owned(),
        schema: function.get("parameters").cloned().unwrap_or_default().into(),
    })
}

/// The tool choice, in the forms of OpenAI's protocols.
pub(super) fn choice(said: Option<&Value>) -> Result<Choice, Unfit> {
    Ok(match said {
        None => Choice::Unsaid,
        Some(Value::String(word)) => match word.as_str() {
            "auto" => Choice::Auto,
            "none" => Choice::Off,
            "required" | "any" => Choice::Any,
            other => return Err(Unfit::skip(format!("tool_choice {other}"))),
        },
        Some(one) => match (
            text(one, "type"),
            one.pointer("/function/name").or_else(|| one.get("name")),
        ) {
            ("function", Some(Value::String(name))) => Choice::Only(name.clone()),
            (kind, _) => return Err(Unfit::skip(format!("tool_choice of type {kind}"))),
        },
    })
}

fn format(asked: &mut Asked, body: &Value) -> Result<(), Unfit> {
    let Some(format) = body.get("response_format") else {
        return Ok(());
    };
    match (text(format, "type"), format.pointer("/json_schema/schema")) {
        ("json_schema", Some(schema)) => {
            let name = format.pointer("/json_schema/name").and_then(Value::as_str);
            asked.schema = Some((name.unwrap_or_default().to_owned(), schema.clone()));
            Ok(())
        }
        ("text", _) => Ok(()),
        (kind, _) => Err(Unfit::skip(format!("response_format {kind} without a schema"))),
    }
}

fn thinking(asked: &mut Asked, body: &Value) -> Result<(), Unfit> {
    let effort = |pointer: &str| {
        body.pointer(pointer)
            .and_then(Value::as_str)
            .map(level)
            .transpose()
    };
    let switched = |on: bool| {
        if on {
            ThinkingLevel::Medium
        } else {
            ThinkingLevel::Off
        }
    };
    let (switch, level) = if let Some(thinking) = body.get("thinking") {
        let wished = effort("/reasoning_effort")?;
        let on = text(thinking, "type") != "disabled";
        let level = wished.filter(|_| on).unwrap_or_else(|| switched(on));
        (ThinkingSwitch::Thinking, Some(level))
    } else if has(body, "reasoning") {
        let level = effort("/reasoning/effort")?.unwrap_or(ThinkingLevel::Medium);
        (ThinkingSwitch::Reasoning, Some(level))
    } else if let Some(on) = body.get("enable_thinking").and_then(Value::as_bool) {
        (ThinkingSwitch::EnableThinking, Some(switched(on)))
    } else if let Some(on) = body
        .pointer("/chat_template_kwargs/enable_thinking")
        .and_then(Value::as_bool)
    {
        (ThinkingSwitch::ChatTemplate, Some(switched(on)))
    } else {
        (ThinkingSwitch::ReasoningEffort, effort("/reasoning_effort")?)
    };
    asked.spec.compat.thinking = switch;
    asked.spec.thinking = level;
    asked.spec.capabilities.thinking = match (level, switch) {
        (None, _) => ThinkingForm::None,
        (Some(_), ThinkingSwitch::ReasoningEffort | ThinkingSwitch::Reasoning) => ThinkingForm::Effort,
        (Some(_), _) => ThinkingForm::Switch,
    };
    Ok(())
}

fn messages(asked: &mut Asked, body: &Value) -> Result<(), Unfit> {
    let mut results = Vec::new();
    let mut system = Vec::new();
    for message in items(body, "messages") {
        let content = message.get("content").unwrap_or(&Value::Null);
        let role = text(message, "role");
        if role == "tool" {
            if let Some(part) = items(message, "content").find(|part| text(part, "type") != "text") {
                return Err(Unfit::skip(format!("{} in a tool result", text(part, "type"))));
            }
            results.push(Block::ToolResult {
                tool_use_id: text(message, "tool_call_id").to_owned(),
                content: joined(content, "\n"),
                is_error: false,
            });
            continue;
        }
        // The results of one step form one message in our types.
        asked.say(Message {
            role: Role::User,
            content: std::mem::take(&mut results),
        });
        match role {
            "system" | "developer" if asked.messages.is_empty() => {
                asked.spec.compat.developer_role = role == "developer";
                system.push(joined(content, "\n\n"));
            }
            "user" => asked.say(Message {
                role: Role::User,
                content: user(content)?,
            }),
            "assistant" => asked.say(Message {
                role: Role::Assistant,
                content: assistant(message)?,
            }),
            other => {
                return Err(Unfit::skip(format!(
                    "a message of the role {other} inside the conversation"
                )));
            }
        }
    }
    asked.say(Message {
        role: Role::User,
        content: results,
    });
    asked.system = system.join("\n\n");
    Ok(())
}

fn user(content: &Value) -> Result<Vec<Block>, Unfit> {
    let part = |part: &Value| match text(part, "type") {
        "text" => Ok(Block::text(text(part, "text"))),
        "image_url" => image(part.pointer("/image_url/url").or_else(|| part.get("image_url"))),
        _ => Err(unknown_part(part)),
    };
    match content {
        Value::Array(parts) => parts.iter().map(part).collect(),
        other => Ok(vec![Block::text(joined(other, ""))]),
    }
}

/// An image given as a data URL.
pub(super) fn image(url: Option<&Value>) -> Result<Block, Unfit> {
    let found = url
        .and_then(Value::as_str)
        .and_then(|url| url.strip_prefix("data:"))
        .and_then(|rest| rest.split_once(";base64,"));
    let Some((media_type, data)) = found else {
        return Err(Unfit::skip("an image by its address"));
    };
    Ok(Block::Image {
        media_type: media_type.to_owned(),
        source: ImageSource::Data(data.to_owned()),
    })
}

fn assistant(message: &Value) -> Result<Vec<Block>, Unfit> {
    let mut content = Vec::new();
    let fields: Map<String, Value> = REASONING
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), message.get(key)?.clone())))
        .collect();
    if !fields.is_empty() {
        let words = REASONING
            .iter()
            .map(|key| text(message, key))
            .find(|words| !words.is_empty());
        content.push(Block::Thinking {
            text: words.unwrap_or_default().to_owned(),
            raw: Some(Value::Object(fields).to_string()),
        });
    }
    if let Some(part) = items(message, "content").find(|part| text(part, "type") != "text") {
        return Err(unknown_part(part));
    }
    let words = joined(message.get("content").unwrap_or(&Value::Null), "");
    if !words.is_empty() {
        content.push(Block::text(words));
    }
    for call in items(message, "tool_calls") {
        let arguments = call.pointer("/function/arguments").cloned().unwrap_or_default();
        content.push(Block::ToolUse {
            id: text(call, "id").to_owned(),
            name: call
                .pointer("/function/name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            input: normal::parsed(arguments),
        });
    }
    Ok(content)
}
