//! The items of an answer, and the blocks made from them.

use crate::fields::{parse_arguments, text};
use agentd_protocol::Block;
use serde_json::{Value, json};

/// Whether an opaque item is of this protocol. Anthropic's blocks have a type, too; those of other dialects have none.
pub(crate) fn is_own(item: &Value) -> bool {
    let kind = text(item, "type");
    let foreign = matches!(
        kind,
        "" | "thinking" | "redacted_thinking" | "text" | "container_upload"
    ) || kind.ends_with("tool_use")
        || kind.ends_with("tool_result")
        // Anthropic's form has the summary in plain text next to the encrypted one.
        || (kind == "compaction" && (item.get("content").is_some() || item.get("encrypted_content").is_none()));
    !foreign
}

/// The blocks of one finished item; `number` generates ids for calls without one.
pub(crate) fn blocks(item: &Value, number: usize) -> Vec<Block> {
    match text(item, "type") {
        "message" => message(item),
        "reasoning" => vec![Block::Thinking {
            text: reasoning(item),
            raw: Some(item.to_string()),
        }],
        "function_call" => vec![Block::ToolUse {
            id: call_id(item, number),
            name: text(item, "name").to_owned(),
            input: input(item),
        }],
        "" => Vec::new(),
        // Calls of the server's own tools, compaction and newer kinds: stored opaquely, sent back unchanged.
        _ => vec![Block::Thinking {
            text: String::new(),
            raw: Some(item.to_string()),
        }],
    }
}

/// The texts of a message. Its phase, which the model expects back, precedes them.
fn message(item: &Value) -> Vec<Block> {
    let texts = texts(item).filter(|text| !text.is_empty()).map(Block::text);
    let phase = item.get("phase").filter(|phase| phase.is_string());
    let phase = phase.map(|phase| Block::Thinking {
        text: String::new(),
        raw: Some(json!({ "type": "message", "phase": phase }).to_string()),
    });
    let mut blocks: Vec<Block> = texts.collect();
    if let (Some(phase), false) = (phase, blocks.is_empty()) {
        blocks.insert(0, phase);
    }
    blocks
}

fn call_id(item: &Value, number: usize) -> String {
    match (text(item, "call_id"), text(item, "id")) {
        ("", "") => format!("call_{number}"),
        ("", id) | (id, _) => id.to_owned(),
    }
}

fn input(item: &Value) -> Value {
    match item.get("arguments") {
        Some(Value::String(text)) => parse_arguments(text),
        // Some servers send an object instead of a string.
        Some(object @ Value::Object(_)) => object.clone(),
        _ => json!({}),
    }
}

/// The readable text of an item that was not streamed.
pub(crate) fn readable(item: &Value) -> String {
    match text(item, "type") {
        "message" => texts(item).collect(),
        "reasoning" => reasoning(item),
        "function_call" => match item.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(other @ Value::Object(_)) => other.to_string(),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// Whether a message contains a refusal by the model.
pub(crate) fn refuses(item: &Value) -> bool {
    parts(item, "content").any(|part| !text(part, "refusal").is_empty())
}

/// The reasoning summary, or the reasoning itself if there is none.
fn reasoning(item: &Value) -> String {
    let of = |key| {
        parts(item, key)
            .map(|part| text(part, "text"))
            .collect::<Vec<_>>()
    };
    let summary = of("summary");
    let found = if summary.is_empty() {
        of("content")
    } else {
        summary
    };
    found.join("\n\n")
}

fn texts(item: &Value) -> impl Iterator<Item = &str> {
    let plain = item.get("content").and_then(Value::as_str);
    plain
        .into_iter()
        .chain(parts(item, "content").map(|part| match text(part, "refusal") {
            "" => text(part, "text"),
            refusal => refusal,
        }))
}

fn parts<'a>(item: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    item.get(key).and_then(Value::as_array).into_iter().flatten()
}
