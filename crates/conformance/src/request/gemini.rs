//! Requests of Gemini.

mod normal;

use super::{Asked, Choice, Unfit, level};
use crate::json::{brief, items, joined, text};
use agentd_protocol::{Block, ImageSource, Message, Role, ThinkingLevel};
use agentd_provider::{Dialect, ToolDef};
use agentd_settings::ThinkingForm;
use serde_json::{Value, json};

pub(super) use normal::normal;

/// Parses a recorded body; the model is in the path.
pub(super) fn read(body: &Value, path: &str) -> Result<Asked, Unfit> {
    if body.get("cachedContent").is_some() {
        return Err(Unfit::skip("a prompt that is kept at the server"));
    }
    let generation = body.get("generationConfig").unwrap_or(&Value::Null);
    let several = generation.get("candidateCount").and_then(Value::as_u64);
    if several.is_some_and(|count| count > 1) {
        return Err(Unfit::skip("n > 1: several answers to one request"));
    }
    let mut asked = Asked::of(Dialect::Gemini, generation);
    let name = path.rsplit('/').next().and_then(|last| last.split(':').next());
    name.unwrap_or_default().clone_into(&mut asked.spec.model);
    asked.limit(generation.get("maxOutputTokens"));
    asked.system = joined(
        body.pointer("/systemInstruction/parts").unwrap_or(&Value::Null),
        "\n\n",
    );
    for tool in items(body, "tools") {
        tools(&mut asked, tool)?;
    }
    asked.choice = choice(
        body.pointer("/toolConfig/functionCallingConfig")
            .unwrap_or(&Value::Null),
    )?;
    thinking(
        &mut asked,
        generation.get("thinkingConfig").unwrap_or(&Value::Null),
    )?;
    format(&mut asked, generation)?;
    let mut calls = Vec::new();
    for content in items(body, "contents") {
        let (role, content) = match text(content, "role") {
            "model" => {
                calls.clear();
                (Role::Assistant, model(content, &mut calls, asked.messages.len()))
            }
            "" | "user" | "function" => (Role::User, user(content, &mut calls)?),
            other => return Err(Unfit::skip(format!("a message of the role {other}"))),
        };
        asked.say(Message { role, content });
    }
    Ok(asked)
}

fn tools(asked: &mut Asked, tool: &Value) -> Result<(), Unfit> {
    let own = tool
        .as_object()
        .is_some_and(|fields| fields.keys().all(|key| key == "functionDeclarations"));
    if !own {
        return Err(Unfit::skip("a tool that the provider runs"));
    }
    for declared in items(tool, "functionDeclarations") {
        let schema = declared
            .get("parametersJsonSchema")
            .or_else(|| declared.get("parameters"));
        asked.tools.push(ToolDef {
            name: text(declared, "name").to_owned(),
            description: text(declared, "description").to_owned(),
            schema: schema.cloned().unwrap_or_default().into(),
        });
    }
    Ok(())
}

fn choice(config: &Value) -> Result<Choice, Unfit> {
    let names: Vec<&str> = ["allowedFunctionNames", "allowed_function_names"]
        .iter()
        .flat_map(|key| items(config, key))
        .filter_map(Value::as_str)
        .collect();
    match (text(config, "mode").to_uppercase().as_str(), names.as_slice()) {
        ("", []) => Ok(Choice::Unsaid),
        ("AUTO", []) => Ok(Choice::Auto),
        ("NONE", []) => Ok(Choice::Off),
        ("ANY", []) => Ok(Choice::Any),
        ("ANY", [name]) => Ok(Choice::Only((*name).to_owned())),
        ("ANY", _) => Err(Unfit::skip("a choice among some of the tools")),
        (mode, _) => Err(Unfit::skip(format!("the function calling mode {mode}"))),
    }
}

fn thinking(asked: &mut Asked, config: &Value) -> Result<(), Unfit> {
    let named = config.get("thinkingLevel").and_then(Value::as_str);
    let budget = config.get("thinkingBudget").and_then(Value::as_i64);
    let shown = config.get("includeThoughts").and_then(Value::as_bool);
    let (form, level) = match (named, budget, shown) {
        (Some(name), ..) => (ThinkingForm::Effort, Some(level(&name.to_lowercase())?)),
        (None, Some(0), _) => (ThinkingForm::Budget, Some(ThinkingLevel::Off)),
        (None, Some(1..), _) => (ThinkingForm::Budget, Some(ThinkingLevel::Low)),
        (None, Some(_), _) | (None, None, Some(true)) => (ThinkingForm::Switch, Some(ThinkingLevel::Medium)),
        (None, None, _) => (ThinkingForm::None, None),
    };
    asked.spec.thinking = level;
    asked.spec.capabilities.thinking = form;
    Ok(())
}

fn format(asked: &mut Asked, generation: &Value) -> Result<(), Unfit> {
    let spoken = items(generation, "responseModalities").filter_map(Value::as_str);
    if let Some(other) = spoken.into_iter().find(|kind| !kind.eq_ignore_ascii_case("text")) {
        return Err(Unfit::skip(format!("an answer as {}", other.to_lowercase())));
    }
    let schema = generation
        .get("responseJsonSchema")
        .or_else(|| generation.get("responseSchema"));
    match (text(generation, "responseMimeType"), schema) {
        (_, Some(schema)) => asked.schema = Some(("answer".to_owned(), schema.clone())),
        ("" | "text/plain", None) => {}
        (kind, None) => return Err(Unfit::skip(format!("responseMimeType {kind} without a schema"))),
    }
    Ok(())
}

/// Calls that wait for their results: name and our id.
type Calls = Vec<(String, String)>;

/// The parts of an answer as our decoder stores them: a part's signature and id are in a closed block before it.
fn model(content: &Value, calls: &mut Calls, turn: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    for part in items(content, "parts") {
        let signature = part.get("thoughtSignature");
        let thought = part.get("thought").and_then(Value::as_bool).unwrap_or_default();
        if let Some(call) = part.get("functionCall") {
            let (name, own) = (text(call, "name"), text(call, "id"));
            let id = match own {
                "" => format!("call_{turn}_{}", calls.len()),
                own => own.to_owned(),
            };
            let mut mark = json!({});
            if !own.is_empty() || signature.is_some() {
                mark =
                    json!({ "functionCall": if own.is_empty() { json!({}) } else { json!({ "id": own }) } });
            }
            blocks.extend(closed(mark, signature));
            blocks.push(Block::ToolUse {
                id: id.clone(),
                name: name.to_owned(),
                input: call.get("args").cloned().unwrap_or_else(|| json!({})),
            });
            calls.push((name.to_owned(), id));
        } else if let (Some(words), false) = (part.get("text").and_then(Value::as_str), thought) {
            if words.is_empty() {
                blocks.extend(signature.map(|_| raw(part)));
            } else {
                blocks.extend(closed(json!({}), signature));
                blocks.push(Block::text(words));
            }
        } else {
            blocks.push(raw(part));
        }
    }
    blocks
}

fn closed(mut mark: Value, signature: Option<&Value>) -> Option<Block> {
    let fields = mark.as_object_mut()?;
    if let Some(signature) = signature {
        fields.insert("thoughtSignature".to_owned(), signature.clone());
    }
    (!fields.is_empty()).then(|| raw(&mark))
}

fn raw(part: &Value) -> Block {
    Block::Thinking {
        text: text(part, "text").to_owned(),
        raw: Some(part.to_string()),
    }
}

fn user(content: &Value, calls: &mut Calls) -> Result<Vec<Block>, Unfit> {
    items(content, "parts")
        .map(|part| user_part(part, calls))
        .collect()
}

fn user_part(part: &Value, calls: &mut Calls) -> Result<Block, Unfit> {
    if let Some(response) = part.get("functionResponse") {
        if response.get("parts").is_some() {
            return Err(Unfit::skip("an image in a tool result"));
        }
        let (name, id) = (text(response, "name"), text(response, "id"));
        let place = calls
            .iter()
            .position(|(called, own)| if id.is_empty() { called == name } else { own == id });
        let Some(place) = place else {
            return Err(Unfit::skip("a result without its call"));
        };
        return Ok(Block::ToolResult {
            tool_use_id: calls.remove(place).1,
            content: normal::result(response.get("response").unwrap_or(&Value::Null)),
            is_error: response.pointer("/response/error").is_some(),
        });
    }
    if let Some(inline) = part.get("inlineData") {
        let media_type = text(inline, "mimeType");
        if !media_type.starts_with("image/") {
            return Err(Unfit::skip(format!("content of type {media_type}")));
        }
        return Ok(Block::Image {
            media_type: media_type.to_owned(),
            source: ImageSource::Data(text(inline, "data").to_owned()),
        });
    }
    if part.get("fileData").is_some() {
        return Err(Unfit::skip("a file by its address"));
    }
    match part.get("text").and_then(Value::as_str) {
        Some(words) => Ok(Block::text(words)),
        None => Err(Unfit::skip(format!("a part such as {}", brief(part)))),
    }
}
