//! Checks of the requests to a model.

use super::{Held, Violation};
use agentd_protocol::{Block, Message, Role};
use std::collections::BTreeSet;
use std::sync::Arc;

/// I3: each call of an answer has exactly one result in the next message, and no result lacks its call.
///
/// # Errors
/// A provider would reject this conversation.
pub fn sound_request(messages: &[Arc<Message>]) -> Held {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let (mut used, mut before) = (BTreeSet::new(), None);
    for message in messages {
        if message.role == Role::Assistant && before.is_none() {
            return Err(Violation::of("I3", "the conversation begins with an answer"));
        }
        for block in &message.content {
            if let Block::ToolResult { tool_use_id, .. } = block
                && !open.remove(tool_use_id.as_str())
            {
                return Err(Violation::of(
                    "I3",
                    format!("a result without its call: {tool_use_id}"),
                ));
            }
        }
        if let Some(id) = open.first() {
            return Err(Violation::of(
                "I3",
                format!("call {id} is unanswered in a request"),
            ));
        }
        for block in &message.content {
            if let Block::ToolUse { id, .. } = block
                && (!open.insert(id) || !used.insert(id))
            {
                return Err(Violation::of("I3", format!("two calls in a request are {id}")));
            }
        }
        before = Some(message.role);
    }
    match open.first() {
        Some(id) => Err(Violation::of(
            "I3",
            format!("call {id} is unanswered in a request"),
        )),
        None => Ok(()),
    }
}

/// Checks that the previous request's conversation is a prefix of this one, unless the generation differs.
///
/// # Errors
/// Messages that were sent before have changed within the generation.
pub fn stable_prefix(before: (&[Arc<Message>], u64), now: (&[Arc<Message>], u64)) -> Held {
    let same = now.0.len() >= before.0.len() && now.0.iter().zip(before.0).all(|(now, then)| now == then);
    if before.1 == now.1 && !same {
        let what = format!("sealed messages changed within generation {}", now.1);
        return Err(Violation::of("prefix", what));
    }
    Ok(())
}
