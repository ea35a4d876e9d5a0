//! Request bodies from cached pieces: a message is encoded once, and a step costs what is new in it.

use crate::spec::ModelSpec;
use crate::{anthropic, chat};
use agentd_protocol::Message;
use agentd_settings::Dialect;
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;

/// A tool as the model is told about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDef {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
}

/// What stands before the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prompt<'a> {
    /// The system prompt; empty for none.
    pub system: &'a str,
}

/// What differs from call to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Params {
    /// The model must answer without calling a tool; the tools stay listed, so the cached prefix holds.
    pub tools_off: bool,
    /// A smaller output limit than the model's own.
    pub max_output: Option<u32>,
}

/// Everything before the messages. The same arguments give the same bytes.
#[must_use]
pub fn encode_prefix(spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], params: &Params) -> Bytes {
    match spec.dialect {
        Dialect::Anthropic => anthropic::prefix(spec, prompt, tools, params),
        Dialect::OpenaiChat => chat::prefix(spec, prompt, tools, params),
        Dialect::OpenaiResponses
        | Dialect::Gemini
        | Dialect::LlamaCompletion
        | Dialect::Ollama
        | Dialect::Scripted => Bytes::new(),
    }
}

/// One message on its own, as JSON objects joined by commas; empty when it has nothing to say.
#[must_use]
pub fn encode_message(spec: &ModelSpec, message: &Message) -> Bytes {
    encode(spec, message, false).bytes.into()
}

/// Everything after the messages.
#[must_use]
pub fn encode_suffix(spec: &ModelSpec, tools: &[ToolDef], params: &Params) -> Bytes {
    let off = params.tools_off && !tools.is_empty();
    Bytes::from_static(match (spec.dialect, off) {
        (Dialect::Anthropic, true) => br#"],"tool_choice":{"type":"none"}}"#,
        (Dialect::OpenaiChat, true) => br#"],"tool_choice":"none"}"#,
        (Dialect::Anthropic | Dialect::OpenaiChat, false) => b"]}",
        (
            Dialect::OpenaiResponses
            | Dialect::Gemini
            | Dialect::LlamaCompletion
            | Dialect::Ollama
            | Dialect::Scripted,
            _,
        ) => b"",
    })
}

/// A message as bytes, and how it fits to its neighbours.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    /// The bytes go on inside the text of the user message before them.
    pub(crate) joins: bool,
    /// The bytes end with `"}` of a user's text, so the next user message can go on inside it.
    pub(crate) open: bool,
}

/// The end of a user message that can be gone on with.
const TEXT_END: usize = 2;

fn encode(spec: &ModelSpec, message: &Message, after_text: bool) -> Encoded {
    match spec.dialect {
        Dialect::Anthropic => anthropic::message(spec, message),
        Dialect::OpenaiChat => chat::message(spec, message, after_text),
        Dialect::OpenaiResponses
        | Dialect::Gemini
        | Dialect::LlamaCompletion
        | Dialect::Ollama
        | Dialect::Scripted => Encoded::default(),
    }
}

/// Messages are put together into fragments of up to this many bytes: a few large writes instead of many small ones, for a
/// copy per message that does not grow with the conversation.
const FRAGMENT: usize = 96 << 10;

/// The encoded messages of one conversation for one model. Bytes once written stay, so that the provider's prompt cache
/// sees the same prefix at each step.
#[derive(Debug, Clone, Default)]
pub struct EncodedHistory {
    key: String,
    generation: u64,
    messages: usize,
    fragments: Vec<Bytes>,
    open: bool,
}

impl EncodedHistory {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Encodes the messages that are new since the last call. `messages` is the whole conversation; another model or
    /// another generation of the conversation starts over.
    pub fn extend(&mut self, spec: &ModelSpec, generation: u64, messages: &[Arc<Message>]) {
        if self.key != spec.name || self.generation != generation || self.messages > messages.len() {
            *self = Self {
                key: spec.name.clone(),
                generation,
                ..Self::default()
            };
        }
        for message in messages.iter().skip(self.messages) {
            let encoded = encode(spec, message, self.open);
            if !encoded.bytes.is_empty() {
                self.push(encoded);
            }
        }
        self.messages = messages.len();
    }

    fn push(&mut self, encoded: Encoded) {
        self.open = encoded.open;
        let Some(mut last) = self.fragments.pop() else {
            self.fragments.push(encoded.bytes.into());
            return;
        };
        if encoded.joins {
            last.truncate(last.len().saturating_sub(TEXT_END));
        }
        let comma: &[u8] = if encoded.joins { b"" } else { b"," };
        if last.len() + encoded.bytes.len() <= FRAGMENT {
            self.fragments
                .push([&last, comma, &encoded.bytes].concat().into());
        } else {
            self.fragments.push(last);
            self.fragments.push(if comma.is_empty() {
                encoded.bytes.into()
            } else {
                [comma, &encoded.bytes].concat().into()
            });
        }
    }

    /// How many messages are in it.
    #[must_use]
    pub const fn messages(&self) -> usize {
        self.messages
    }
}

/// A request body: pieces that are shared with other requests, and their exact length.
#[derive(Debug, Clone, Default)]
pub struct RequestBody {
    fragments: Vec<Bytes>,
    len: u64,
}

impl RequestBody {
    /// Prefix, conversation and suffix in one body.
    #[must_use]
    pub fn new(prefix: Bytes, history: &EncodedHistory, suffix: Bytes) -> Self {
        // The chat dialect keeps its system message in the prefix, so the conversation may not be first in its array.
        let comma = prefix.ends_with(b"}") && !history.fragments.is_empty();
        let mut fragments = Vec::with_capacity(history.fragments.len() + 3);
        fragments.push(prefix);
        fragments.extend(comma.then(|| Bytes::from_static(b",")));
        fragments.extend(history.fragments.iter().cloned());
        fragments.push(suffix);
        let len = fragments.iter().map(|fragment| fragment.len() as u64).sum();
        Self { fragments, len }
    }

    /// The length in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes in one piece; copies.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.fragments.concat().into()
    }

    pub(crate) fn into_fragments(self) -> Vec<Bytes> {
        self.fragments
    }
}

#[cfg(test)]
mod tests;
