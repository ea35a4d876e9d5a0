//! The parts of an answer, and the blocks made from them.

use crate::fields::text;
use crate::gemini::replay::{Mark, closed};
use crate::reply::ModelEvent;
use agentd_protocol::Block;
use serde_json::{Map, Value, json};

/// A part that is still growing.
#[derive(Debug)]
enum Part {
    Text {
        block: u32,
        text: String,
        signature: Option<String>,
    },
    Thought {
        block: u32,
        text: String,
        signature: Option<String>,
    },
    Call {
        name: String,
        args: Value,
        mark: Mark,
    },
    /// An unknown kind: it is sent back unchanged.
    Closed(Value),
}

/// The parts of one answer so far.
#[derive(Debug, Default)]
pub(crate) struct Parts(Vec<Part>);

impl Parts {
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Call { .. }))
    }

    /// Takes one part of a chunk. Text continues the part before it, unless one of the two is signed.
    pub(crate) fn take(&mut self, mut part: Value, events: &mut Vec<ModelEvent>) {
        let signature = Some(text(&part, "thoughtSignature").to_owned()).filter(|text| !text.is_empty());
        if let Some(call @ Value::Object(_)) = part.get_mut("functionCall").map(Value::take) {
            return self.call(call, signature, events);
        }
        let thought = part.get("thought") == Some(&Value::Bool(true));
        match (part.get("text").and_then(Value::as_str), signature) {
            (Some("") | None, Some(_)) if is_text(&part) => {
                if let Some(fields) = part.as_object_mut() {
                    fields.entry("text").or_insert_with(|| json!(""));
                }
                self.0.push(Part::Closed(part));
            }
            (Some(""), None) => {}
            (Some(piece), signature) => self.grow(thought, piece, signature, events),
            (None, _) if is_text(&part) => {}
            (None, _) => self.0.push(Part::Closed(part)),
        }
    }

    fn call(&mut self, mut call: Value, signature: Option<String>, events: &mut Vec<ModelEvent>) {
        let block = self.next_block();
        let name = text(&call, "name").to_owned();
        let args = match call.get_mut("args").map(Value::take) {
            Some(Value::Null) | None => json!({}),
            Some(args) => args,
        };
        // Not a call; its signature would otherwise be attributed to the next one.
        if name.is_empty() && args.as_object().is_some_and(Map::is_empty) {
            return;
        }
        let id = Some(text(&call, "id").to_owned()).filter(|id| !id.is_empty());
        events.push(ModelEvent::ToolStart {
            block,
            name: name.clone(),
        });
        events.push(ModelEvent::ToolInputDelta {
            block,
            text: args.to_string(),
        });
        self.0.push(Part::Call {
            name,
            args,
            mark: Mark::of_call(signature, id),
        });
    }

    fn grow(&mut self, thought: bool, piece: &str, signed: Option<String>, events: &mut Vec<ModelEvent>) {
        let next = self.next_block();
        let new = |signature| {
            let (block, text) = (next, piece.to_owned());
            if thought {
                Part::Thought {
                    block,
                    text,
                    signature,
                }
            } else {
                Part::Text {
                    block,
                    text,
                    signature,
                }
            }
        };
        let block = match (self.0.last_mut(), thought) {
            (
                Some(Part::Text {
                    block,
                    text,
                    signature: None,
                }),
                false,
            )
            | (
                Some(Part::Thought {
                    block,
                    text,
                    signature: None,
                }),
                true,
            ) if signed.is_none() => {
                text.push_str(piece);
                *block
            }
            _ => {
                self.0.push(new(signed));
                next
            }
        };
        let text = piece.to_owned();
        events.push(if thought {
            ModelEvent::ThinkingDelta { block, text }
        } else {
            ModelEvent::TextDelta { block, text }
        });
    }

    fn next_block(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// The parts as blocks; a call without an id gets a generated one.
    pub(crate) fn into_blocks(self) -> Vec<Block> {
        let mut blocks = Vec::new();
        for (part, number) in self.0.into_iter().zip(1_u32..) {
            match part {
                Part::Text { text, signature, .. } => {
                    blocks.extend(Mark::of_text(signature).into_block());
                    blocks.push(Block::text(text));
                }
                Part::Thought { text, signature, .. } => blocks.push(thought(text, signature)),
                Part::Call { name, args, mark } => {
                    let id = mark.id.clone().unwrap_or_else(|| format!("call_{number}"));
                    blocks.extend(mark.into_block());
                    blocks.push(Block::ToolUse {
                        id,
                        name,
                        input: args,
                    });
                }
                Part::Closed(part) => blocks.push(closed(String::new(), &part)),
            }
        }
        blocks
    }
}

fn thought(text: String, signature: Option<String>) -> Block {
    let mut part = Map::new();
    part.insert("text".to_owned(), json!(text));
    part.insert("thought".to_owned(), json!(true));
    if let Some(signature) = signature {
        part.insert("thoughtSignature".to_owned(), json!(signature));
    }
    closed(text, &Value::Object(part))
}

/// Whether a part is text. The text may be missing, because an empty one is optional.
fn is_text(part: &Value) -> bool {
    let known = |key: &String| matches!(key.as_str(), "text" | "thought" | "thoughtSignature");
    part.as_object().is_none_or(|fields| fields.keys().all(known))
}
