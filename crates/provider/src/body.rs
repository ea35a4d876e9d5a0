//! Builds request bodies from cached pieces: each message is encoded once, so a step pays only for what is new.

use crate::dialect::codec;
use crate::json_text;
use crate::spec::{HistoryKey, ModelSpec};
use agentd_protocol::{Block, Message, Role, ToolProtocol};
use bytes::Bytes;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// A tool as described to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDef {
    /// Its name.
    pub name: String,
    /// Its purpose and use.
    pub description: String,
    /// The JSON Schema of its arguments, which sessions share.
    pub schema: Arc<Value>,
}

/// What precedes the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prompt<'a> {
    /// The system prompt as far as many sessions share it; empty for none. Caches that need marks get one at its end.
    pub system: &'a str,
    /// The rest of the system prompt, which belongs to a session or a directory.
    pub own: &'a str,
}

impl<'a> Prompt<'a> {
    /// A system prompt in one piece.
    #[must_use]
    pub const fn of(system: &'a str) -> Self {
        Self { system, own: "" }
    }

    /// The whole system prompt.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        match (self.system, self.own) {
            (whole, "") | ("", whole) => Cow::Borrowed(whole),
            (system, own) => Cow::Owned(format!("{system}{own}")),
        }
    }

    /// Its parts that are not empty.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &'a str> {
        [self.system, self.own]
            .into_iter()
            .filter(|part| !part.is_empty())
    }
}

/// Whether and which tool the model must call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice<'a> {
    /// The request does not say; the model chooses.
    #[default]
    Unsaid,
    /// The request says that the model chooses.
    Auto,
    /// No tool may be called; the tools stay listed, so that the cached prefix stays valid.
    Off,
    /// Any one tool.
    Any,
    /// This tool.
    Only(&'a str),
}

/// The parameters that differ between calls.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Params<'a> {
    /// Whether and which tool the model must call.
    pub tool_choice: ToolChoice<'a>,
    /// Whether the model may request several calls at once; absent: not sent.
    pub parallel_tools: Option<bool>,
    /// A smaller output limit than the model's own.
    pub max_output: Option<u32>,
    /// The answer must be JSON of this schema: its name and the JSON Schema. Not sent to models that do not support it.
    pub schema: Option<(&'a str, &'a Value)>,
    /// What requests with the same prefix have in common (the session); empty: not sent.
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
            let system = json_text::system(&prompt.text(), tools);
            codec.prefix(spec, &Prompt::of(&system), &[], params)
        }
    }
}

/// One message on its own, as JSON objects joined by commas; empty when the message has no content to send.
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

/// An encoded message, and how it joins its neighbours.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    /// The bytes continue the text of the user message before them.
    pub(crate) joins: bool,
    /// The bytes end with the `"}` of a user's text, so that the next user message can continue it.
    pub(crate) open: bool,
    /// The offset in the bytes where a cache mark can be inserted.
    pub(crate) markable: Option<usize>,
}

/// The length of the end of a user message that the next one can continue (`"}`).
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

/// Marks a block as the end of a prefix that the provider caches.
const CACHE_MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
/// The same, to be kept for an hour. All marks of a request agree: the API refuses a longer one behind a shorter one.
const HOUR_MARK: &[u8] = br#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;

/// Messages are merged into fragments of up to this many bytes: a few large writes instead of many small ones.
const FRAGMENT: usize = 96 << 10;

/// The encoded messages of one conversation for one model. Encoded bytes never change, so that the provider's prompt
/// cache sees the same prefix at each step.
#[derive(Debug, Clone, Default)]
pub struct EncodedHistory {
    key: Option<HistoryKey>,
    generation: u64,
    messages: usize,
    fragments: Vec<Bytes>,
    open: bool,
    /// The last answer with tool calls: some dialects repeat the names of the calls in the results.
    asked: Option<Arc<Message>>,
    /// The last place where a cache mark can be inserted, as an offset in all bytes.
    markable: Option<usize>,
    /// The same place before the last answer, where the previous request ended.
    before: Option<usize>,
    /// The marks ask for an hour.
    hour: bool,
}

impl EncodedHistory {
    /// An empty history.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Encodes the messages that are new since the last call. `messages` is the whole conversation; a different model or
    /// generation of the conversation starts over.
    pub fn extend(&mut self, spec: &ModelSpec, generation: u64, messages: &[Arc<Message>]) {
        self.hour = spec.cache_hour;
        let same = self.key.as_ref().is_some_and(|key| key.is_of(spec));
        if !same || self.generation != generation || self.messages > messages.len() {
            *self = Self {
                key: Some(HistoryKey::of(spec)),
                generation,
                hour: self.hour,
                ..Self::default()
            };
        }
        for message in messages.iter().skip(self.messages) {
            let encoded = encode(spec, message, self.open, self.asked.as_deref());
            if !encoded.bytes.is_empty() {
                if message.role == Role::Assistant {
                    self.before = self.markable;
                }
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

    /// Merges a new message with the preceding fragments that are not much longer, as far as they fit: so each byte is
    /// copied only a few times, and few fragments remain.
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

    /// The fragments of this request, with its cache marks: at its end, where the next request reads, and where the
    /// previous request ended, because the provider looks back only 20 blocks and a step may have more. The marks
    /// follow from the conversation alone, so a repeated request has the same bytes. They are not part of the
    /// fragments, because bytes once sent never change.
    fn pieces(&self) -> Vec<Bytes> {
        let mut pieces = Vec::with_capacity(self.fragments.len() + 5);
        let marks = [self.before, self.markable.filter(|at| Some(*at) != self.before)];
        let mut marks = marks.into_iter().flatten().peekable();
        let mark = if self.hour { HOUR_MARK } else { CACHE_MARK };
        let mut from = 0;
        for fragment in &self.fragments {
            let (mut rest, end) = (fragment.clone(), from + fragment.len());
            while let Some(at) = marks.next_if(|at| *at <= end) {
                pieces.push(rest.split_to(at - from));
                pieces.push(Bytes::from_static(mark));
                from = at;
            }
            pieces.push(rest);
            from = end;
        }
        pieces
    }

    /// The same without the mark at its end: for a request whose end no later request reads.
    #[must_use]
    pub const fn read_once(mut self) -> Self {
        self.markable = self.before;
        self
    }

    /// The number of messages encoded.
    #[must_use]
    pub const fn messages(&self) -> usize {
        self.messages
    }
}

/// Fewer bytes than this are not worth sharing.
const WORTH_SHARING: usize = 4 << 10;

/// Everything before the messages, in two parts: what other sessions of the same model share (mostly the tools),
/// and the rest.
#[derive(Debug, Clone, Default)]
pub struct Prefix {
    common: Bytes,
    own: Bytes,
}

impl Prefix {
    /// Splits these bytes: the part that they have in common with the start of `sample` shares its memory.
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

    /// Whether it is empty.
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

/// A request body: pieces that other requests share, and their exact length.
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

    /// A body of these pieces.
    pub(crate) fn of(fragments: Vec<Bytes>) -> Self {
        let len = fragments.iter().map(|fragment| fragment.len() as u64).sum();
        Self { fragments, len }
    }

    /// The last piece: what follows the messages.
    pub(crate) fn end(&self) -> Bytes {
        self.fragments.last().cloned().unwrap_or_default()
    }

    /// The length in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes in one buffer; copies.
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
