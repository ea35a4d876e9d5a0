//! Accumulates text and reasoning, and keeps the reasoning in the form in which it is sent back.

use crate::decoder::check_blocks;
use crate::error::ModelError;
use crate::fields::text;
use crate::reply::ModelEvent;
use agentd_protocol::Block;
use serde_json::{Map, Value, json};

/// The fields in which servers send reasoning; the first non-empty one counts.
pub(crate) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// A block of text that is still growing.
#[derive(Debug, Default)]
pub(crate) struct Words {
    block: Option<u32>,
    pub(crate) text: String,
}

impl Words {
    /// Appends a piece and returns the block's number, which the first piece allocates.
    pub(crate) fn grow(&mut self, piece: &str, next_block: &mut u32) -> u32 {
        self.text.push_str(piece);
        *self.block.get_or_insert_with(|| {
            let block = *next_block;
            *next_block = next_block.saturating_add(1);
            block
        })
    }
}

/// The reasoning of one answer.
#[derive(Debug, Default)]
pub(crate) struct Reasoning {
    words: Words,
    field: Option<&'static str>,
    /// It arrived as parts of the content.
    in_parts: bool,
    details: Vec<Value>,
}

impl Reasoning {
    pub(crate) const fn is_empty(&self) -> bool {
        self.words.text.is_empty() && self.details.is_empty()
    }

    /// The number of details, which are not shown to people.
    pub(crate) const fn details(&self) -> usize {
        self.details.len()
    }

    /// Reads the reasoning fields of a delta. `whole`: it is the complete answer, not a delta.
    pub(crate) fn take(
        &mut self,
        delta: &Value,
        whole: bool,
        next_block: &mut u32,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let field = REASONING_FIELDS
            .into_iter()
            .find(|field| !text(delta, field).is_empty());
        if let Some(field) = field {
            self.field.get_or_insert(field);
            self.think(text(delta, field), next_block, events);
        }
        let details = delta.get("reasoning_details").and_then(Value::as_array);
        for detail in details.into_iter().flatten() {
            if whole || !self.goes_on(detail) {
                self.details.push(detail.clone());
            }
        }
        check_blocks(self.details.len())
    }

    /// Takes reasoning that arrives as a part of the content.
    pub(crate) fn take_part(&mut self, thinking: &Value, next_block: &mut u32, events: &mut Vec<ModelEvent>) {
        self.in_parts = true;
        match thinking {
            Value::String(piece) => self.think(piece, next_block, events),
            Value::Array(pieces) => pieces
                .iter()
                .for_each(|piece| self.think(text(piece, "text"), next_block, events)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
    }

    /// Takes a piece. One that stood between marks in the text is not sent back, because templates drop it, too.
    pub(crate) fn think(&mut self, piece: &str, next_block: &mut u32, events: &mut Vec<ModelEvent>) {
        if !piece.is_empty() {
            let block = self.words.grow(piece, next_block);
            events.push(ModelEvent::ThinkingDelta {
                block,
                text: piece.to_owned(),
            });
        }
    }

    /// Joins a streamed piece to the detail that it continues: a signature must come back with its whole text, not with
    /// fragments of it. A detail with a signature is complete.
    fn goes_on(&mut self, piece: &Value) -> bool {
        let kind = text(piece, "type");
        let grows = match kind {
            "reasoning.text" => "text",
            "reasoning.summary" => "summary",
            _ => return false,
        };
        let Some(Value::Object(last)) = self.details.last_mut() else {
            return false;
        };
        let open = !last.get("signature").is_some_and(Value::is_string);
        if !open || last.get("type") != piece.get("type") || last.get("index") != piece.get("index") {
            return false;
        }
        for (name, value) in piece.as_object().into_iter().flatten() {
            match (last.get_mut(name), value) {
                (_, Value::Null) => {}
                (Some(Value::String(all)), Value::String(more)) if name == grows => all.push_str(more),
                (Some(Value::Null) | None, _) => drop(last.insert(name.clone(), value.clone())),
                (Some(_), _) => {}
            }
        }
        true
    }

    /// The block, with the data that goes back to the server unchanged.
    pub(crate) fn into_block(self) -> Option<Block> {
        if self.is_empty() {
            return None;
        }
        let text = self.words.text;
        let mut raw = Map::new();
        if !self.details.is_empty() {
            raw.insert("reasoning_details".to_owned(), self.details.into());
        }
        if self.in_parts {
            let part = json!({ "type": "thinking", "thinking": [{ "type": "text", "text": text }] });
            raw.insert("content".to_owned(), json!([part]));
        }
        if let Some(field) = self.field {
            raw.insert(field.to_owned(), json!(text));
        }
        let raw = (!raw.is_empty()).then(|| Value::Object(raw).to_string());
        Some(Block::Thinking { text, raw })
    }
}
