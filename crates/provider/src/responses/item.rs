//! An output item that is still growing.

use crate::fields::text;
use crate::reply::ModelEvent;
use crate::responses::items;
use agentd_protocol::Block;
use serde_json::Value;

/// An output item, from its start to its final form.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) block: u32,
    /// The item as it started, or its final form once it is done.
    pub(crate) value: Value,
    /// The part shown so far.
    pub(crate) grown: String,
    pub(crate) done: bool,
}

impl Item {
    pub(crate) fn kind(&self) -> &str {
        text(&self.value, "type")
    }

    /// Emits the next piece for live viewers.
    pub(crate) fn show(&mut self, piece: &str, events: &mut Vec<ModelEvent>) {
        if piece.is_empty() {
            return;
        }
        self.grown.push_str(piece);
        let (block, text) = (self.block, piece.to_owned());
        events.extend(match self.kind() {
            "message" => Some(ModelEvent::TextDelta { block, text }),
            "reasoning" => Some(ModelEvent::ThinkingDelta { block, text }),
            "function_call" => Some(ModelEvent::ToolInputDelta { block, text }),
            _ => None,
        });
    }

    /// The blocks of the finished item; `number` counts the items.
    pub(crate) fn into_blocks(self, number: usize) -> Vec<Block> {
        if self.done {
            return items::blocks(&self.value, number);
        }
        // Some servers never mark an item as done: then it consists of what was streamed.
        match self.kind() {
            "message" if !self.grown.is_empty() => vec![Block::text(self.grown)],
            "reasoning" if !self.grown.is_empty() => vec![Block::Thinking {
                text: self.grown,
                raw: None,
            }],
            "function_call" => {
                let mut call = self.value;
                if let (Some(fields), false) = (call.as_object_mut(), self.grown.is_empty()) {
                    fields.insert("arguments".to_owned(), Value::String(self.grown));
                }
                items::blocks(&call, number)
            }
            _ => Vec::new(),
        }
    }
}
