//! Requests of the Responses protocol.

use super::chat::{choice, image, object, parsed};
use super::ids::Ids;
use super::{Asked, Unfit, level, unknown_part};
use crate::json::{has, items, joined, set, take, text};
use agentd_protocol::{Block, Message, Role};
use agentd_provider::{Dialect, ToolDef};
use agentd_settings::ThinkingForm;
use serde_json::{Value, json};

/// References to server-side state, which a request with the whole conversation never uses.
const STATE: [(&str, &str); 4] = [
    (
        "previous_response_id",
        "a conversation that is kept at the server",
    ),
    ("conversation", "a conversation that is kept at the server"),
    ("prompt", "a prompt that is kept at the server"),
    ("background", "an answer that is fetched later"),
];

/// The server that supports `instructions`.
const OPENAI: &str = "https://api.openai.com/v1";

/// Reads a recorded body.
pub(super) fn read(body: &Value) -> Result<Asked, Unfit> {
    let said = |key: &str| body.get(key).is_some_and(|value| value != &json!(false));
    if let Some((_, what)) = STATE.iter().find(|(key, _)| said(key)) {
        return Err(Unfit::skip(*what));
    }
    let mut asked = Asked::of(Dialect::OpenaiResponses, body);
    asked.limit(body.get("max_output_tokens"));
    asked.parallel = body.get("parallel_tool_calls").and_then(Value::as_bool);
    // On that server, reasoning without its content would refer to an id that is not stored.
    let kept = |item: &Value| text(item, "type") != "reasoning" || has(item, "encrypted_content");
    if has(body, "instructions") && items(body, "input").all(kept) {
        OPENAI.clone_into(&mut asked.spec.base_url);
    }
    for tool in items(body, "tools") {
        asked.tools.push(tool_def(tool)?);
    }
    asked.choice = choice(body.get("tool_choice"))?;
    if let Some(effort) = body.pointer("/reasoning/effort").and_then(Value::as_str) {
        asked.spec.thinking = Some(level(effort)?);
        asked.spec.capabilities.thinking = ThinkingForm::Effort;
    }
    let format = body.pointer("/text/format").unwrap_or(&Value::Null);
    match (text(format, "type"), format.get("schema")) {
        ("json_schema", Some(schema)) => {
            asked.schema = Some((text(format, "name").to_owned(), schema.clone()));
        }
        ("" | "text", _) => {}
        (kind, _) => return Err(Unfit::skip(format!("text.format {kind} without a schema"))),
    }
    conversation(&mut asked, body)?;
    Ok(asked)
}

fn tool_def(tool: &Value) -> Result<ToolDef, Unfit> {
    if text(tool, "type") != "function" {
        return Err(Unfit::skip("a tool that the provider runs"));
    }
    Ok(ToolDef {
        name: text(tool, "name").to_owned(),
        description: text(tool, "description").to_owned(),
        schema: tool.get("parameters").cloned().unwrap_or_default().into(),
    })
}

/// Adjacent items on the same side of the conversation form one message in our types.
fn conversation(asked: &mut Asked, body: &Value) -> Result<(), Unfit> {
    let mut system = vec![text(body, "instructions").to_owned()];
    let mut open: Option<Message> = None;
    let whole = body.get("input").filter(|input| input.is_string());
    let whole = whole.map(|input| json!({ "role": "user", "content": input }));
    for item in whole.iter().chain(items(body, "input")) {
        let role = text(item, "role");
        let (side, blocks) = match (text(item, "type"), role) {
            ("" | "message", "system" | "developer") if asked.messages.is_empty() && open.is_none() => {
                asked.spec.compat.developer_role = role == "developer";
                system.push(joined(item.get("content").unwrap_or(&Value::Null), "\n\n"));
                continue;
            }
            ("" | "message", "user") => (Role::User, user(item)?),
            ("" | "message", "assistant") => (Role::Assistant, assistant(item)?),
            ("" | "message", role) => {
                return Err(Unfit::skip(format!(
                    "a message of the role {role} inside the conversation"
                )));
            }
            ("function_call_output", _) => (Role::User, vec![result(item)?]),
            ("function_call", _) => (Role::Assistant, vec![call(item)]),
            ("item_reference", _) => return Err(Unfit::skip("an item that is kept at the server")),
            (kind, _) if kind.ends_with("_output") => {
                return Err(Unfit::skip(format!("content of type {kind}")));
            }
            // The provider's own items are sent back unchanged.
            _ => (Role::Assistant, vec![closed(item)]),
        };
        match &mut open {
            // Results are merged into one message; text from a person is a message of its own.
            Some(message)
                if message.role == side && (side == Role::Assistant || results(message, &blocks)) =>
            {
                message.content.extend(blocks);
            }
            _ => {
                let message = Message {
                    role: side,
                    content: blocks,
                };
                open.replace(message)
                    .into_iter()
                    .for_each(|message| asked.say(message));
            }
        }
    }
    open.into_iter().for_each(|message| asked.say(message));
    system.retain(|text| !text.is_empty());
    asked.system = system.join("\n\n");
    Ok(())
}

fn results(message: &Message, more: &[Block]) -> bool {
    let all = message.content.iter().chain(more);
    all.into_iter()
        .all(|block| matches!(block, Block::ToolResult { .. }))
}

fn user(item: &Value) -> Result<Vec<Block>, Unfit> {
    let part = |part: &Value| match text(part, "type") {
        "input_text" | "text" => Ok(Block::text(text(part, "text"))),
        "input_image" => image(part.get("image_url")),
        _ => Err(unknown_part(part)),
    };
    match item.get("content") {
        Some(Value::String(text)) => Ok(vec![Block::text(text)]),
        _ => items(item, "content").map(part).collect(),
    }
}

fn assistant(item: &Value) -> Result<Vec<Block>, Unfit> {
    let mut blocks = Vec::new();
    if let Some(phase) = item.get("phase") {
        blocks.push(closed(&json!({ "type": "message", "phase": phase })));
    }
    if let Some(Value::String(text)) = item.get("content") {
        blocks.push(Block::text(text));
    }
    for part in items(item, "content") {
        match text(part, "type") {
            "output_text" | "text" => blocks.push(Block::text(text(part, "text"))),
            "refusal" => blocks.push(Block::text(text(part, "refusal"))),
            _ => return Err(unknown_part(part)),
        }
    }
    Ok(blocks)
}

fn closed(item: &Value) -> Block {
    Block::Thinking {
        text: String::new(),
        raw: Some(item.to_string()),
    }
}

fn call(item: &Value) -> Block {
    Block::ToolUse {
        id: text(item, "call_id").to_owned(),
        name: text(item, "name").to_owned(),
        input: parsed(item.get("arguments").cloned().unwrap_or_default()),
    }
}

fn result(item: &Value) -> Result<Block, Unfit> {
    if let Some(part) = items(item, "output").find(|part| text(part, "type") != "input_text") {
        return Err(Unfit::skip(format!("{} in a tool result", text(part, "type"))));
    }
    Ok(Block::ToolResult {
        tool_use_id: text(item, "call_id").to_owned(),
        content: joined(item.get("output").unwrap_or(&Value::Null), "\n"),
        is_error: false,
    })
}

/// Normalises a body: one item per text, the system prompt in one place, arguments as JSON.
pub(super) fn normal(body: &mut Value) {
    if body.get("stream") == Some(&json!(false)) {
        take(body, "stream");
    }
    if body.get("tools").is_none() {
        take(body, "tool_choice");
        take(body, "parallel_tool_calls");
    }
    if body.pointer("/text/format/type") == Some(&json!("text")) {
        take(body, "text");
    }
    // The highest level has two names.
    if let Some(effort) = body
        .pointer_mut("/reasoning/effort")
        .filter(|effort| *effort == "max")
    {
        *effort = json!("xhigh");
    }
    let mut system: Vec<String> = take(body, "instructions")
        .iter()
        .map(|said| joined(said, ""))
        .collect();
    let mut told = Vec::new();
    let mut ids = Ids::default();
    let input = match take(body, "input") {
        Some(Value::String(words)) => vec![json!({ "role": "user", "content": words })],
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    for mut item in input {
        match (text(&item, "type"), text(&item, "role")) {
            ("" | "message", "system" | "developer") if told.is_empty() => {
                system.push(joined(item.get("content").unwrap_or(&Value::Null), "\n\n"));
            }
            ("" | "message", _) => told.extend(said(&mut item)),
            ("function_call", _) => {
                ids.number(&mut item, "call_id");
                let arguments = take(&mut item, "arguments").unwrap_or_default();
                set(&mut item, "arguments", object(parsed(arguments)));
                told.push(item);
            }
            ("function_call_output", _) => {
                ids.number(&mut item, "call_id");
                let output = joined(item.get("output").unwrap_or(&Value::Null), "\n");
                set(&mut item, "output", output.into());
                told.push(item);
            }
            _ => told.push(item),
        }
    }
    set(body, "system", system.join("\n\n").into());
    set(body, "input", told.into());
}

/// The pieces of a message.
fn said(item: &mut Value) -> Vec<Value> {
    let (role, phase) = (text(item, "role").to_owned(), item.get("phase").cloned());
    let parts = match take(item, "content") {
        Some(Value::String(words)) => vec![json!({ "text": words })],
        Some(Value::Array(parts)) => parts,
        _ => Vec::new(),
    };
    let piece = |part: Value| {
        let words = [text(&part, "text"), text(&part, "refusal")].concat();
        let image = part.get("image_url").cloned();
        (image.is_some() || !words.trim().is_empty())
            .then(|| json!({ "role": role, "phase": phase, "text": words, "image": image }))
    };
    parts.into_iter().filter_map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_consists_of_its_items() {
        let mut item = json!({"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": " "}]});
        assert_eq!(
            said(&mut item),
            [json!({"role": "user", "phase": null, "text": "a", "image": null})]
        );
    }
}
