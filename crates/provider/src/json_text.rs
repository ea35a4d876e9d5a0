//! Tool calls as JSON in the text, for models without native tool calls.
//!
//! The log keeps what the model wrote; only the model's view of it is projected: a call without the surrounding text,
//! a result as user text. So the roles alternate, as the templates of many local models require.

use crate::body::ToolDef;
use agentd_protocol::{Block, Message, Role};
use serde_json::{Value, json};

/// Tells the model how to write calls.
const RULES: &str = r#"# Tools

You act through the tools below, and only through them. To call one, end your answer with one JSON object:

{"tool": "NAME", "args": {"ARGUMENT": "VALUE"}}

- One call in an answer. A sentence or two may stand before it, nothing after it. Its result comes back as the next message and begins with [tool result] or [tool error]; never write such a message yourself.
- `args` holds what the tool's JSON Schema asks for: a valid JSON object, with line breaks and quotes in strings escaped.
- When no further tool is needed, answer in plain words without a call."#;

/// The system prompt with the tools and the rules of the protocol. The same arguments produce the same bytes.
pub(crate) fn system(system: &str, tools: &[ToolDef]) -> String {
    if tools.is_empty() {
        return system.to_owned();
    }
    let mut parts = Vec::with_capacity(tools.len() + 2);
    if !system.trim().is_empty() {
        parts.push(system.to_owned());
    }
    parts.push(RULES.to_owned());
    parts.extend(tools.iter().map(describe));
    parts.join("\n\n")
}

fn describe(tool: &ToolDef) -> String {
    let ToolDef {
        name,
        description,
        schema,
    } = tool;
    format!("## {name}\n{}\nJSON Schema of args: {schema}", description.trim())
}

/// A message as a text-only model reads it. It is empty when nothing remains.
pub(crate) fn project(message: &Message) -> Message {
    let content = match message.role {
        Role::User => joined(user(&message.content)),
        Role::Assistant => joined(assistant(&message.content)),
    };
    Message {
        role: message.role,
        content,
    }
}

/// Only the calls, if there are any; reasoning is not replayed.
fn assistant(content: &[Block]) -> Vec<Block> {
    let mut calls: Vec<Value> = content.iter().filter_map(call).collect();
    if calls.is_empty() {
        let text = |block: &&Block| matches!(block, Block::Text { .. });
        return content.iter().filter(text).cloned().collect();
    }
    let said = if calls.len() == 1 {
        calls.pop().unwrap_or_default()
    } else {
        Value::Array(calls)
    };
    vec![Block::text(said.to_string())]
}

fn call(block: &Block) -> Option<Value> {
    match block {
        Block::ToolUse { name, input, .. } => Some(json!({ "tool": name, "args": input })),
        Block::Text { .. }
        | Block::Image { .. }
        | Block::Thinking { .. }
        | Block::ToolResult { .. }
        | Block::Unknown => None,
    }
}

/// Results as text, numbered in the order of the calls if there are several.
fn user(content: &[Block]) -> Vec<Block> {
    let results = content
        .iter()
        .filter(|block| matches!(block, Block::ToolResult { .. }))
        .count();
    let mut number = 0_usize;
    let mut read = |block: &Block| match block {
        Block::ToolResult {
            content, is_error, ..
        } => {
            number += 1;
            let what = if *is_error { "error" } else { "result" };
            let which = if results > 1 {
                format!(" {number} of {results}")
            } else {
                String::new()
            };
            let said = if content.trim().is_empty() {
                "(no output)"
            } else {
                content
            };
            Some(Block::text(format!("[tool {what}{which}]\n{said}")))
        }
        Block::Text { .. } | Block::Image { .. } => Some(block.clone()),
        Block::Thinking { .. } | Block::ToolUse { .. } | Block::Unknown => None,
    };
    content.iter().filter_map(&mut read).collect()
}

/// Merges adjacent texts and drops empty ones.
fn joined(blocks: Vec<Block>) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match (all.last_mut(), block) {
            (_, Block::Text { text }) if text.trim().is_empty() => {}
            (Some(Block::Text { text: before }), Block::Text { text }) => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            (_, block) => all.push(block),
        }
    }
    all
}

#[cfg(test)]
mod tests;
