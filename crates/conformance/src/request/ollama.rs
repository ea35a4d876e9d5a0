//! Requests of Ollama's own protocol.

use super::chat::object;
use super::{Asked, Unfit, level};
use crate::json::{drain, field, items, set, take, text};
use agentd_protocol::{Block, ImageSource, Message, Role, ThinkingLevel};
use agentd_provider::{Dialect, ToolDef};
use agentd_settings::ThinkingForm;
use serde_json::{Value, json};

/// Reads a recorded body.
pub(super) fn read(body: &Value) -> Result<Asked, Unfit> {
    let mut asked = Asked::of(Dialect::Ollama, body);
    let options = body.get("options").unwrap_or(&Value::Null);
    asked.spec.stream = body.get("stream") != Some(&json!(false));
    asked.spec.temperature = options.get("temperature").and_then(Value::as_f64);
    asked.limit(options.get("num_predict"));
    if let Some(window) = options.get("num_ctx").and_then(Value::as_u64) {
        asked.spec.context_window = window;
    }
    for tool in items(body, "tools") {
        let function = tool.get("function").unwrap_or(&Value::Null);
        asked.tools.push(ToolDef {
            name: text(function, "name").to_owned(),
            description: text(function, "description").to_owned(),
            schema: function.get("parameters").cloned().unwrap_or_default().into(),
        });
    }
    let (form, wished) = match body.get("think") {
        None => (ThinkingForm::None, None),
        Some(Value::String(name)) => (ThinkingForm::Effort, Some(level(name)?)),
        Some(Value::Bool(true)) => (ThinkingForm::Switch, Some(ThinkingLevel::Medium)),
        Some(_) => (ThinkingForm::Switch, Some(ThinkingLevel::Off)),
    };
    asked.spec.capabilities.thinking = form;
    asked.spec.thinking = wished;
    match body.get("format") {
        None => {}
        Some(schema @ Value::Object(_)) => asked.schema = Some(("answer".to_owned(), schema.clone())),
        Some(_) => return Err(Unfit::skip("format json without a schema")),
    }
    messages(&mut asked, body)?;
    Ok(asked)
}

fn messages(asked: &mut Asked, body: &Value) -> Result<(), Unfit> {
    let mut calls: Vec<(String, String)> = Vec::new();
    let mut results = Vec::new();
    let mut system = Vec::new();
    for message in items(body, "messages") {
        if text(message, "role") == "tool" {
            results.push(result(message, &mut calls));
            continue;
        }
        asked.say(Message {
            role: Role::User,
            content: std::mem::take(&mut results),
        });
        match text(message, "role") {
            "system" if asked.messages.is_empty() => system.push(text(message, "content").to_owned()),
            "user" => asked.say(Message {
                role: Role::User,
                content: user(message),
            }),
            "assistant" => {
                let content = assistant(message, &mut calls, asked.messages.len());
                asked.say(Message {
                    role: Role::Assistant,
                    content,
                });
            }
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

fn user(message: &Value) -> Vec<Block> {
    let image = |image: &Value| {
        image.as_str().map(|data| Block::Image {
            media_type: "image/png".to_owned(),
            source: ImageSource::Data(data.to_owned()),
        })
    };
    let mut content = vec![Block::text(text(message, "content"))];
    content.extend(items(message, "images").filter_map(image));
    content
}

fn assistant(message: &Value, calls: &mut Vec<(String, String)>, turn: usize) -> Vec<Block> {
    let mut content = Vec::new();
    let thinking = text(message, "thinking");
    if !thinking.is_empty() {
        content.push(Block::Thinking {
            text: thinking.to_owned(),
            raw: Some(json!({ "thinking": thinking }).to_string()),
        });
    }
    content.push(Block::text(text(message, "content")));
    calls.clear();
    for call in items(message, "tool_calls") {
        let function = call.get("function").unwrap_or(&Value::Null);
        let id = match text(call, "id") {
            "" => format!("call_{turn}_{}", calls.len()),
            own => own.to_owned(),
        };
        calls.push((text(function, "name").to_owned(), id.clone()));
        content.push(Block::ToolUse {
            id,
            name: text(function, "name").to_owned(),
            input: function.get("arguments").cloned().unwrap_or_else(|| json!({})),
        });
    }
    content
}

/// A result names its call, or only the tool; then it belongs to that tool's first call without a result.
fn result(message: &Value, calls: &mut Vec<(String, String)>) -> Block {
    let (id, name) = (text(message, "tool_call_id"), text(message, "tool_name"));
    let place = calls
        .iter()
        .position(|(called, own)| if id.is_empty() { called == name } else { own == id });
    Block::ToolResult {
        tool_use_id: place.map_or_else(|| id.to_owned(), |place| calls.remove(place).1),
        content: text(message, "content").to_owned(),
        is_error: false,
    }
}

/// Normalises a body: optional defaults are dropped, adjacent messages that we would join are joined.
pub(super) fn normal(body: &mut Value) {
    if body.get("stream") == Some(&json!(true)) {
        take(body, "stream");
    }
    let mut told: Vec<Value> = Vec::new();
    for mut message in drain(body, "messages") {
        for call in field(&mut message, "tool_calls")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            take(call, "id");
            take(call, "type");
            if let Some(function) = field(call, "function") {
                let arguments = take(function, "arguments").unwrap_or_else(|| json!({}));
                set(function, "arguments", object(arguments));
            }
        }
        take(&mut message, "tool_call_id");
        for key in ["content", "thinking"] {
            if text(&message, key).trim().is_empty() {
                take(&mut message, key);
            }
        }
        if items(&message, "images").next().is_none() {
            take(&mut message, "images");
        }
        let role = text(&message, "role").to_owned();
        let joins = told.last_mut().filter(|last| {
            matches!(role.as_str(), "user" | "system")
                && text(last, "role") == role
                && last.get("images").is_none()
                && message.get("images").is_none()
        });
        if let Some(last) = joins {
            let both = format!("{}\n\n{}", text(last, "content"), text(&message, "content"));
            set(last, "content", both.into());
        } else if message.as_object().is_some_and(|fields| fields.len() > 1) {
            told.push(message);
        }
    }
    set(body, "messages", told.into());
}
