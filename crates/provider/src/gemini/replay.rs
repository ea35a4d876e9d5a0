//! What our blocks cannot express about a part: its signature and the id of its call. An opaque thinking block before
//! the block stores them, and they go back on exactly that part.

use crate::fields::text;
use agentd_protocol::Block;
use serde_json::{Map, Value, json};

/// A placeholder for the signature of a call that another model made; the provider accepts it.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The metadata of the part that follows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Mark {
    pub(crate) signature: Option<String>,
    /// The provider's own id of the call.
    pub(crate) id: Option<String>,
    /// The part is a tool call.
    pub(crate) call: bool,
}

impl Mark {
    /// The mark of a text part.
    pub(crate) fn of_text(signature: Option<String>) -> Self {
        Self {
            signature,
            ..Self::default()
        }
    }

    /// The mark of a tool call.
    pub(crate) fn of_call(signature: Option<String>, id: Option<String>) -> Self {
        Self {
            signature,
            id,
            call: true,
        }
    }

    /// The mark as a block, unless it is empty.
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

    /// Adds the metadata to the part of a text or a call.
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

    /// The provider requires a signature on the first call of each answer, even if another model made it.
    pub(crate) fn signed(mut self) -> Self {
        self.signature.get_or_insert_with(|| NO_SIGNATURE.to_owned());
        self
    }
}

/// The meaning of an opaque block.
#[derive(Debug, PartialEq)]
pub(crate) enum Closed {
    /// Metadata for the part that follows.
    Mark(Mark),
    /// A whole part.
    Part,
}

/// Wraps a whole part in a thinking block.
pub(crate) fn closed(text: String, part: &Value) -> Block {
    Block::Thinking {
        text,
        raw: Some(part.to_string()),
    }
}

/// Reads an opaque block; none if another dialect made it.
pub(crate) fn read(raw: &str) -> Option<Closed> {
    let Ok(Value::Object(fields)) = serde_json::from_str(raw) else {
        return None;
    };
    // The blocks of all other dialects have a type, or a field named after reasoning, or the fields of a message.
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

/// An empty text part, the carrier of a signature.
pub(crate) fn signed_nothing(signature: &str) -> Value {
    json!({ "text": "", "thoughtSignature": signature })
}
