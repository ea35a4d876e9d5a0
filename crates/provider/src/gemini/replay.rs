//! What a block of ours cannot say about a part: its signature and the id of its call. It stands in a closed thinking
//! block of its own before the block, and goes back on exactly that part.

use crate::fields::text;
use agentd_protocol::Block;
use serde_json::{Map, Value, json};

/// Stands for the signature of a call that another model made; the provider lets it pass.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// What belongs to the part that follows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Mark {
    pub(crate) signature: Option<String>,
    /// The provider's own id of the call.
    pub(crate) id: Option<String>,
    /// The part is a call.
    pub(crate) call: bool,
}

impl Mark {
    /// The mark of a text.
    pub(crate) fn of_text(signature: Option<String>) -> Self {
        Self {
            signature,
            ..Self::default()
        }
    }

    /// The mark of a call.
    pub(crate) fn of_call(signature: Option<String>, id: Option<String>) -> Self {
        Self {
            signature,
            id,
            call: true,
        }
    }

    /// The mark as a block, if there is anything to keep.
    pub(crate) fn into_block(self) -> Option<Block> {
        if self.signature.is_none() && self.id.is_none() {
            return None;
        }
        let mut raw = Map::new();
        if self.call {
            let id = self.id.map(|id| ("id".to_owned(), Value::String(id)));
            raw.insert("functionCall".to_owned(), id.into_iter().collect());
        }
        if let Some(signature) = self.signature {
            raw.insert("thoughtSignature".to_owned(), Value::String(signature));
        }
        Some(closed(String::new(), &Value::Object(raw)))
    }

    /// Puts what is kept on the part of a text or a call.
    pub(crate) fn put_on(self, part: &mut Value) {
        let Some(fields) = part.as_object_mut() else {
            return;
        };
        if let (Some(id), Some(call)) = (
            self.id,
            fields.get_mut("functionCall").and_then(Value::as_object_mut),
        ) {
            call.insert("id".to_owned(), Value::String(id));
        }
        if let Some(signature) = self.signature {
            fields.insert("thoughtSignature".to_owned(), Value::String(signature));
        }
    }

    /// The provider wants a signature on the first call of each answer, also where another model made it.
    pub(crate) fn signed(mut self) -> Self {
        self.signature.get_or_insert_with(|| NO_SIGNATURE.to_owned());
        self
    }
}

/// What a closed block is good for.
#[derive(Debug, PartialEq)]
pub(crate) enum Closed {
    /// It belongs to the part that follows.
    Mark(Mark),
    /// A whole part.
    Part,
}

/// A thinking block that is a part of its own.
pub(crate) fn closed(text: String, part: &Value) -> Block {
    Block::Thinking {
        text,
        raw: Some(part.to_string()),
    }
}

/// Reads a closed block; nothing, when another dialect made it.
pub(crate) fn read(raw: &str) -> Option<Closed> {
    let Ok(Value::Object(fields)) = serde_json::from_str(raw) else {
        return None;
    };
    // Every other dialect's block has a type, or is named after reasoning, or is a field of a message.
    let foreign = |key: &String| {
        matches!(key.as_str(), "type" | "thinking" | "content") || key.starts_with("reasoning")
    };
    if fields.is_empty() || fields.keys().any(foreign) {
        return None;
    }
    let part = Value::Object(fields);
    let own = |value: &Value, key: &str| Some(text(value, key).to_owned()).filter(|text| !text.is_empty());
    let signature = own(&part, "thoughtSignature");
    let alone = part.as_object().is_some_and(|fields| fields.len() == 1);
    Some(match part.get("functionCall") {
        Some(call) => Closed::Mark(Mark::of_call(signature, own(call, "id"))),
        None if alone && signature.is_some() => Closed::Mark(Mark::of_text(signature)),
        None => Closed::Part,
    })
}

/// The empty text that a signature can come on.
pub(crate) fn signed_nothing(signature: &str) -> Value {
    json!({ "text": "", "thoughtSignature": signature })
}
