//! Joins the halves of characters that a gateway cut apart, in live deltas and in the finished answer.

use crate::reply::ModelEvent;
use agentd_lenient_json::{Joiner, mend};
use agentd_protocol::Block;
use serde_json::Value;

/// Off until the first half arrives: only then are the private characters that stand for halves looked for.
#[derive(Debug, Default)]
pub(crate) struct Halves {
    found: bool,
    /// The block whose last delta was looked at, and what it ended with.
    open: (u32, Joiner),
}

impl Halves {
    /// A frame held halves.
    pub(crate) const fn found(&mut self) {
        self.found = true;
    }

    /// Joins the halves within the new events. A first half waits for the next event of its block.
    pub(crate) fn join_events(&mut self, events: &mut [ModelEvent]) {
        if !self.found {
            return;
        }
        for event in events {
            let at = event.block();
            if self.open.0 != at {
                self.open = (at, Joiner::default());
            }
            let (ModelEvent::TextDelta { text, .. }
            | ModelEvent::ThinkingDelta { text, .. }
            | ModelEvent::ToolStart { name: text, .. }
            | ModelEvent::ToolInputDelta { text, .. }) = event;
            *text = self.open.1.feed(text);
        }
    }

    /// Joins the halves of the whole answer.
    pub(crate) fn join_blocks(&self, blocks: &mut [Block]) {
        if !self.found {
            return;
        }
        for block in blocks {
            match block {
                Block::Text { text } => *text = mend(text),
                Block::Thinking { text, raw } => {
                    *text = mend(text);
                    *raw = raw.as_deref().map(mend);
                }
                Block::ToolUse { name, input, .. } => {
                    *name = mend(name);
                    mend_value(input);
                }
                Block::Image { .. } | Block::ToolResult { .. } | Block::Unknown => {}
            }
        }
    }
}

fn mend_value(value: &mut Value) {
    match value {
        Value::String(text) => *text = mend(text),
        Value::Array(items) => items.iter_mut().for_each(mend_value),
        Value::Object(fields) => fields.values_mut().for_each(mend_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
