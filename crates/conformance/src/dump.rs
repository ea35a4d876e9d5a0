//! Decoded answers in a form that allows a comparison with other implementations.

use crate::answer::{decode, plain_spec};
use crate::cassette::{Exchange, exchanges, files};
use crate::error::ConformanceError;
use crate::route::{Route, route};
use agentd_protocol::{Block, Usage};
use agentd_provider::ModelReply;
use serde_json::{Value, json};
use std::path::Path;

/// Every successful model answer below a directory, as recorded and as we decode it: one JSON object each.
///
/// # Errors
/// A directory or a file cannot be read.
pub fn dump(dir: &Path) -> Result<Vec<Value>, ConformanceError> {
    let mut lines = Vec::new();
    for path in files(dir, &["yaml", "yml"])? {
        let name = path.strip_prefix(dir).unwrap_or(&path).display().to_string();
        let found = exchanges(&path)?.into_iter().flatten().enumerate();
        lines.extend(found.filter_map(|(number, exchange)| line(&format!("{name} #{number}"), &exchange)));
    }
    Ok(lines)
}

fn line(name: &str, exchange: &Exchange) -> Option<Value> {
    let Route::Dialect(dialect) = route(&exchange.when) else {
        return None;
    };
    let then = &exchange.then;
    if !(200..300).contains(&then.status) {
        return None;
    }
    let outcome = match decode(&plain_spec(dialect), then, usize::MAX) {
        Ok((reply, _)) => normal(&reply),
        Err(error) => json!({ "error": format!("{:?}: {error}", error.class) }),
    };
    let answer = json!({ "stream": then.is_stream(), "body": then.body });
    Some(json!({ "exchange": name, "dialect": dialect, "answer": answer, "ours": outcome }))
}

fn normal(reply: &ModelReply) -> Value {
    let content: Vec<Value> = reply.content.iter().filter_map(block).collect();
    let Usage {
        input,
        output,
        cache_read,
        cache_write,
        cache_write_1h,
        reasoning,
    } = reply.usage;
    json!({
        "content": content,
        "stop_reason": reply.stop_reason,
        "usage": {
            "input": input, "output": output, "cache_read": cache_read, "cache_write": cache_write,
            "cache_write_1h": cache_write_1h, "reasoning": reasoning,
        },
    })
}

/// The comparable part of a block: without the provider's own JSON, and no empty thinking.
fn block(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({ "text": text })),
        Block::Thinking { text, .. } if text.is_empty() => None,
        Block::Thinking { text, .. } => Some(json!({ "thinking": text })),
        Block::ToolUse { id, name, input } => Some(json!({ "call": name, "id": id, "input": input })),
        Block::Image { .. } | Block::ToolResult { .. } | Block::Unknown => None,
    }
}
