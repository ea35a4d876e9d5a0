//! Request bodies from cached pieces: a message is encoded once, and a step costs what is new in it.

use crate::dialect::codec;
use crate::json_text;
use crate::spec::{HistoryKey, ModelSpec};
use agentd_protocol::{Block, Message, ToolProtocol};
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

/// Whether and which tool the model must call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice<'a> {
    /// Nothing is said; the model chooses.
    #[default]
    Unsaid,
    /// The model chooses, and is told so.
    Auto,
    /// None; the tools stay listed, so the cached prefix holds.
    Off,
    /// Any one.
    Any,
    /// This one.
    Only(&'a str),
}

/// What differs from call to call.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Params<'a> {
    /// Whether and which tool the model must call.
    pub tool_choice: ToolChoice<'a>,
    /// Whether it may ask for several calls at once; absent: nothing is said.
    pub parallel_tools: Option<bool>,
    /// A smaller output limit than the model's own.
    pub max_output: Option<u32>,
    /// The answer must be JSON of this schema: its name and the JSON Schema. Left out where the model cannot.
    pub schema: Option<(&'a str, &'a Value)>,
    /// What requests with the same prefix have in common (the session); empty: nothing is said.
    pub cache_key: &'a str,
}

/// Everything before the messages. The same arguments give the same bytes.
#[must_use]
pub fn encode_prefix(spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
    let Some(codec) = codec(spec.dialect) else {
        return Bytes::new();
    };
    match spec.tool_protocol {
        ToolProtocol::Native => codec.prefix(spec, prompt, tools, params),
        ToolProtocol::JsonText => {
            let system = json_text::system(prompt.system, tools);
            codec.prefix(spec, &Prompt { system: &system }, &[], params)
        }
    }
}

/// One message on its own, as JSON objects joined by commas; empty when it has nothing to say.
#[must_use]
pub fn encode_message(spec: &ModelSpec, message: &Message) -> Bytes {
    encode(spec, message, false, None).bytes.into()
}

/// Everything after the messages.
#[must_use]
pub fn encode_suffix(spec: &ModelSpec, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
    let tools = match spec.tool_protocol {
        ToolProtocol::Native => tools,
        ToolProtocol::JsonText => &[],
    };
    codec(spec.dialect).map_or_else(Bytes::new, |codec| codec.suffix(spec, tools, params))
}

/// A message as bytes, and how it fits to its neighbours.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    /// The bytes go on inside the text of the user message before them.
    pub(crate) joins: bool,
    /// The bytes end with `"}` of a user's text, so the next user message can go on inside it.
    pub(crate) open: bool,
    /// How many blocks they are to the provider's prompt cache, where it counts them.
    pub(crate) blocks: usize,
    /// Where in the bytes a cache mark can be put.
    pub(crate) markable: Option<usize>,
}

/// The end of a user message that can be gone on with.
const TEXT_END: usize = 2;

fn encode(spec: &ModelSpec, message: &Message, after_text: bool, asked: Option<&Message>) -> Encoded {
    let Some(codec) = codec(spec.dialect) else {
        return Encoded::default();
    };
    match spec.tool_protocol {
        ToolProtocol::Native => codec.message_after(spec, message, after_text, asked),
        ToolProtocol::JsonText => codec.message(spec, &json_text::project(message), after_text),
    }
}

/// What makes a block the end of a prefix that the provider caches.
const CACHE_MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// The provider looks for a cached prefix at its marks and at so many blocks before each, less a margin.
const LOOKBACK: usize = 18;

/// Messages are put together into fragments of up to this many bytes: a few large writes instead of many small ones.
const FRAGMENT: usize = 96 << 10;

/// The encoded messages of one conversation for one model. Bytes once written stay, so that the provider's prompt cache
/// sees the same prefix at each step.
#[derive(Debug, Clone, Default)]
pub struct EncodedHistory {
    key: Option<HistoryKey>,
    generation: u64,
    messages: usize,
    fragments: Vec<Bytes>,
    open: bool,
    /// The last answer that had calls: some dialects repeat their names in the results.
    asked: Option<Arc<Message>>,
    /// The last place where a cache mark can be put, as an offset in all bytes.
    markable: Option<usize>,
    /// Where this request puts one. The last block of each request is marked by the server itself, and the next request
    /// finds that entry when it has not grown by more blocks than the provider looks back. A step of many calls has
    /// grown by more: then the end of the request before is marked, too. The mark is no part of the fragments, because
    /// bytes once sent stay, and because a mark in each long step would soon be more than the four that are allowed.
    mark: Option<usize>,
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
        let same = self.key.as_ref().is_some_and(|key| key.is_of(spec));
        if !same || self.generation != generation || self.messages > messages.len() {
            *self = Self {
                key: Some(HistoryKey::of(spec)),
                generation,
                ..Self::default()
            };
        }
        let (before, mut blocks) = (self.markable, 0);
        for message in messages.iter().skip(self.messages) {
            let encoded = encode(spec, message, self.open, self.asked.as_deref());
            if !encoded.bytes.is_empty() {
                blocks += encoded.blocks;
                self.push(&encoded);
            }
            if message
                .content
                .iter()
                .any(|block| matches!(block, Block::ToolUse { .. }))
            {
                self.asked = Some(Arc::clone(message));
            }
        }
        // A repeated request is the same request, mark and all.
        if self.messages < messages.len() {
            self.mark = before.filter(|_| blocks > LOOKBACK);
        }
        self.messages = messages.len();
    }

    fn push(&mut self, encoded: &Encoded) {
        let (length, markable) = (encoded.bytes.len(), encoded.markable);
        self.append(encoded);
        if let Some(at) = markable {
            let end: usize = self.fragments.iter().map(Bytes::len).sum();
            self.markable = Some(end.saturating_sub(length).saturating_add(at));
        }
    }

    /// A new message takes in the fragments before it that are not much longer, as far as they fit: so each byte is copied
    /// a few times only, and few fragments are left.
    fn append(&mut self, encoded: &Encoded) {
        self.open = encoded.open;
        let comma: &[u8] = match self.fragments.last_mut() {
            Some(last) if encoded.joins => {
                last.truncate(last.len().saturating_sub(TEXT_END));
                b""
            }
            Some(_) => b",",
            None => b"",
        };
        let (mut from, mut length) = (self.fragments.len(), comma.len() + encoded.bytes.len());
        for before in self.fragments.iter().rev() {
            if before.len() > length.saturating_mul(2) || before.len() + length > FRAGMENT {
                break;
            }
            from -= 1;
            length += before.len();
        }
        let mut merged = Vec::with_capacity(length);
        for fragment in self.fragments.drain(from..) {
            merged.extend_from_slice(&fragment);
        }
        merged.extend_from_slice(comma);
        merged.extend_from_slice(&encoded.bytes);
        self.fragments.push(merged.into());
    }

    /// The fragments of this request, the cache mark among them.
    fn pieces(&self) -> Vec<Bytes> {
        let mut pieces = Vec::with_capacity(self.fragments.len() + 3);
        let mut left = self.mark;
        for fragment in &self.fragments {
            match left {
                Some(at) if at <= fragment.len() => {
                    pieces.extend([
                        fragment.slice(..at),
                        Bytes::from_static(CACHE_MARK),
                        fragment.slice(at..),
                    ]);
                    left = None;
                }
                other => {
                    pieces.push(fragment.clone());
                    left = other.map(|at| at.saturating_sub(fragment.len()));
                }
            }
        }
        pieces
    }

    /// How many messages are in it.
    #[must_use]
    pub const fn messages(&self) -> usize {
        self.messages
    }
}

/// Less than this is not worth a piece of its own.
const WORTH_SHARING: usize = 4 << 10;

/// Everything before the messages: what it has in common with other sessions of its model, which is most of the tools, and
/// the rest.
#[derive(Debug, Clone, Default)]
pub struct Prefix {
    common: Bytes,
    own: Bytes,
}

impl Prefix {
    /// These bytes; as much of them as `sample` begins with is shared with it.
    #[must_use]
    pub fn sharing(bytes: &[u8], sample: &Bytes) -> Self {
        let same = bytes.iter().zip(sample).take_while(|(one, other)| one == other);
        let common = Some(same.count()).filter(|common| *common >= WORTH_SHARING);
        let (common, own) = bytes.split_at(common.unwrap_or_default());
        Self {
            common: sample.slice(..common.len()),
            own: Bytes::copy_from_slice(own),
        }
    }

    /// The length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.common.len().saturating_add(self.own.len())
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn ends_with(&self, end: &[u8]) -> bool {
        let last = if self.own.is_empty() {
            &self.common
        } else {
            &self.own
        };
        last.ends_with(end)
    }
}

impl From<Bytes> for Prefix {
    fn from(own: Bytes) -> Self {
        Self {
            common: Bytes::new(),
            own,
        }
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
    pub fn new(prefix: impl Into<Prefix>, history: &EncodedHistory, suffix: Bytes) -> Self {
        let prefix = prefix.into();
        // The chat dialect keeps its system message in the prefix, so the conversation may not be first in its array.
        let comma = prefix.ends_with(b"}") && !history.fragments.is_empty();
        let mut fragments = Vec::with_capacity(history.fragments.len() + 4);
        fragments.extend(
            [prefix.common, prefix.own]
                .into_iter()
                .filter(|part| !part.is_empty()),
        );
        fragments.extend(comma.then(|| Bytes::from_static(b",")));
        fragments.extend(history.pieces());
        fragments.push(suffix);
        Self::of(fragments)
    }

    /// These pieces.
    pub(crate) fn of(fragments: Vec<Bytes>) -> Self {
        let len = fragments.iter().map(|fragment| fragment.len() as u64).sum();
        Self { fragments, len }
    }

    /// The last piece: what came after the messages.
    pub(crate) fn end(&self) -> Bytes {
        self.fragments.last().cloned().unwrap_or_default()
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
