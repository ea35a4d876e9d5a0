//! A request of any dialect as the list of blocks that a prompt cache sees: tools, system prompt, conversation.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

/// How long an entry is kept unless its mark says more.
const SHORT_MS: u64 = 300_000;
const LONG_MS: u64 = 3_600_000;

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// Its JSON without the mark.
    pub(super) text: String,
    /// A model wrote it.
    pub(super) answered: bool,
    /// It ends a prefix to cache, for this long.
    pub(super) mark_ms: Option<u64>,
}

impl Block {
    pub(super) fn tokens(&self) -> u64 {
        (self.text.len() as u64).div_ceil(4)
    }
}

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) blocks: Vec<Block>,
    /// Tokens of the tools.
    pub(super) tools: u64,
    /// Tokens of the system prompt.
    pub(super) system: u64,
}

impl Request {
    /// Reads a body of any dialect.
    pub(super) fn read(body: &[u8]) -> Result<Self> {
        let body: Map<String, Value> = serde_json::from_slice(body).context("a request is an object")?;
        let list = |names: &[&str]| {
            let found = names.iter().find_map(|name| body.get(*name));
            found.and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let mut blocks: Vec<Block> = list(&["tools"]).iter().flat_map(tools).collect();
        let tools = sum(&blocks);
        for name in ["system", "instructions", "systemInstruction"] {
            match body.get(name) {
                Some(Value::Array(parts)) => blocks.extend(parts.iter().map(|part| block(part, false))),
                Some(whole) => blocks.push(block(whole, false)),
                None => {}
            }
        }
        let frame = blocks.len();
        let mut system = sum(&blocks) - tools;
        for message in list(&["messages", "input", "contents"]) {
            let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
            let from = blocks.len();
            of_message(&message, &mut blocks);
            if matches!(role, "system" | "developer") && from <= frame {
                system += sum(blocks.get(from..).unwrap_or_default());
            }
        }
        if let (Some(mark), Some(last)) = (body.get("cache_control"), blocks.last_mut()) {
            last.mark_ms = Some(lifetime(mark));
        }
        Ok(Self {
            blocks,
            tools,
            system,
        })
    }

    pub(super) fn tokens(&self) -> u64 {
        sum(&self.blocks)
    }

    /// Tokens that the model wrote so far.
    pub(super) fn answered(&self) -> u64 {
        let answered = self.blocks.iter().filter(|block| block.answered);
        answered.map(Block::tokens).sum()
    }
}

fn sum(blocks: &[Block]) -> u64 {
    blocks.iter().map(Block::tokens).sum()
}

/// Gemini puts all tools into one element.
fn tools(entry: &Value) -> Vec<Block> {
    match entry.get("functionDeclarations").and_then(Value::as_array) {
        Some(all) => all.iter().map(|tool| block(tool, false)).collect(),
        None => vec![block(entry, false)],
    }
}

/// The parts of a message, or the message if it has none.
fn of_message(message: &Value, blocks: &mut Vec<Block>) {
    let field = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
    let answered = matches!(field("role"), "assistant" | "model") || field("type") == "function_call";
    let parts = ["content", "parts"]
        .iter()
        .find_map(|name| message.get(*name).and_then(Value::as_array));
    match parts {
        Some(parts) => blocks.extend(parts.iter().map(|part| block(part, answered))),
        None => blocks.push(block(message, answered)),
    }
}

fn block(value: &Value, answered: bool) -> Block {
    let mut value = value.clone();
    let mark = value
        .as_object_mut()
        .and_then(|fields| fields.shift_remove("cache_control"));
    Block {
        text: value.to_string(),
        answered,
        mark_ms: mark.as_ref().map(lifetime),
    }
}

fn lifetime(mark: &Value) -> u64 {
    match mark.get("ttl").and_then(Value::as_str) {
        Some("1h") => LONG_MS,
        _ => SHORT_MS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: &Value) -> Request {
        Request::read(body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn tools_precede_the_system_prompt_in_any_wire_order() {
        let anthropic = json!({
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hi", "cache_control": { "type": "ephemeral" } }] },
                         { "role": "assistant", "content": [{ "type": "text", "text": "ho" }] }],
            "system": [{ "type": "text", "text": "be brief", "cache_control": { "type": "ephemeral", "ttl": "1h" } }],
            "tools": [{ "name": "Read" }],
        });
        let request = read(&anthropic);
        let shown = request
            .blocks
            .iter()
            .map(|block| (block.text.as_str(), block.mark_ms, block.answered));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                (r#"{"name":"Read"}"#, None, false),
                (r#"{"type":"text","text":"be brief"}"#, Some(LONG_MS), false),
                (r#"{"type":"text","text":"hi"}"#, Some(SHORT_MS), false),
                (r#"{"type":"text","text":"ho"}"#, None, true),
            ]
        );
        assert_eq!((request.tools, request.system, request.answered()), (4, 9, 7));
    }

    #[test]
    fn other_dialects_are_parsed_too() {
        let chat =
            json!({ "messages": [{ "role": "system", "content": "x" }, { "role": "user", "content": "y" }] });
        assert!(read(&chat).system > 0);
        assert_eq!(read(&chat).blocks.len(), 2);
        let gemini = json!({ "systemInstruction": { "parts": [{ "text": "x" }] }, "tools": [{ "functionDeclarations": [{}, {}] }],
            "contents": [{ "role": "model", "parts": [{ "text": "y" }] }] });
        assert_eq!(read(&gemini).blocks.len(), 4);
        assert!(read(&gemini).answered() > 0);
        let automatic = json!({ "cache_control": { "type": "ephemeral" }, "messages": [{ "role": "user", "content": "y" }] });
        assert_eq!(read(&automatic).blocks[0].mark_ms, Some(SHORT_MS));
    }
}
