//! The request of a model call, built from parts that are encoded once.

use crate::toolset::Toolset;
use agentd_prompt::{SystemPrompt, ToolLine, without_tools};
use agentd_protocol::{Message, RequestItem, SessionId};
use agentd_provider::{
    Adjust, EncodedHistory, ModelSpec, Params, Prefix, Prompt, RequestBody, ToolChoice, ToolDef,
    encode_prefix, encode_suffix,
};
use agentd_tools::{Registry, ToolEntry};
use agentd_transcript::Transcript;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

/// Approximate bytes of text per token.
const BYTES_PER_TOKEN: u64 = 4;

/// The system prompt of a session.
#[derive(Debug, Default)]
pub(crate) struct System {
    text: String,
    /// The bytes that all sessions of the model share.
    shared: usize,
    /// The lines about tools.
    lines: Vec<ToolLine>,
    /// The prompt that is sent instead while a provider refuses tools that it mentions.
    sent: Option<(String, usize)>,
}

impl From<SystemPrompt> for System {
    fn from(prompt: SystemPrompt) -> Self {
        Self {
            shared: agentd_prompt::shared_bytes(&prompt.shown),
            text: prompt.shown.text,
            lines: prompt.lines,
            sent: None,
        }
    }
}

impl System {
    fn prompt(&self) -> Prompt<'_> {
        let whole = (self.text.as_str(), self.shared);
        let sent = self.sent.as_ref().map(|(text, shared)| (text.as_str(), *shared));
        let (text, shared) = sent.unwrap_or(whole);
        let (system, own) = text.split_at(shared);
        Prompt { system, own }
    }

    /// Leaves out what the prompt says about refused tools.
    fn leave_out(&mut self, items: &BTreeSet<RequestItem>) {
        let refused = |tool: &str| {
            items
                .iter()
                .any(|item| matches!(item, RequestItem::Tool { name } if name == tool))
        };
        let sent = without_tools(&self.text, &self.lines, refused, self.shared);
        self.sent = (sent.0 != self.text).then_some(sent);
    }
}

/// The parts that stay the same from step to step, so that a step encodes only what is new.
#[derive(Debug)]
pub(crate) struct Requests {
    system: System,
    /// Identifies the system prompt.
    system_hash: u64,
    /// The cache key that all requests of this session share.
    cache_key: String,
    model: Option<Adjusted>,
    frame: Option<Frame>,
    history: EncodedHistory,
    /// The items that the provider of the last request refused.
    left_out: BTreeSet<RequestItem>,
}

/// A configured model with this session's adjustments.
#[derive(Debug)]
struct Adjusted {
    of: Arc<ModelSpec>,
    adjust: Adjust,
    spec: Arc<ModelSpec>,
}

/// The prefix of a model's first session, without its session-specific parts. It is set once; later sessions share the
/// bytes that they have in common with it.
pub(crate) type Sample = OnceLock<Bytes>;

/// The parts around the conversation.
#[derive(Debug)]
struct Frame {
    spec: Arc<ModelSpec>,
    tools_off: bool,
    toolset: u64,
    prefix: Prefix,
    suffix: Bytes,
}

impl Requests {
    pub(crate) fn new(session: SessionId, system: System) -> Self {
        let mut hasher = DefaultHasher::new();
        system.text.hash(&mut hasher);
        Self {
            system_hash: hasher.finish(),
            system,
            cache_key: session.to_string(),
            model: None,
            frame: None,
            history: EncodedHistory::new(),
            left_out: BTreeSet::new(),
        }
    }

    /// Identifies everything that a provider's prompt cache depends on, besides the model: the same number means the same
    /// bytes before the conversation's new end. The id of its tools ([`Toolset::id`]) works the same way.
    pub(crate) fn prefix_id(&self, transcript: &Transcript) -> u64 {
        self.system_hash ^ transcript.generation().rotate_left(32)
    }

    /// Approximate tokens that the system prompt and the tools take up in the window.
    pub(crate) fn frame_tokens(&self) -> u64 {
        let bytes = match &self.frame {
            Some(frame) => frame.prefix.len().saturating_add(frame.suffix.len()),
            None => self.system.text.len(),
        };
        (bytes as u64).div_ceil(BYTES_PER_TOKEN)
    }

    /// Whether the last request went to another model, so that nothing of the conversation is in this one's cache.
    pub(crate) fn went_elsewhere(&self, model: &str) -> bool {
        self.model.as_ref().is_some_and(|last| last.of.name != model)
    }

    /// The model with this session's adjustments; rebuilt only when one of them changed.
    pub(crate) fn adjusted(&mut self, of: Arc<ModelSpec>, adjust: Adjust) -> Arc<ModelSpec> {
        if let Some(known) = &self.model
            && Arc::ptr_eq(&known.of, &of)
            && known.adjust == adjust
        {
            return Arc::clone(&known.spec);
        }
        let spec = if adjust == Adjust::default() {
            Arc::clone(&of)
        } else {
            Arc::new(of.adjusted(&adjust))
        };
        self.model = Some(Adjusted {
            of,
            adjust,
            spec: Arc::clone(&spec),
        });
        spec
    }

    /// From now on, requests are sent without these items.
    pub(crate) fn leave_out(&mut self, items: Vec<RequestItem>) {
        let items: BTreeSet<RequestItem> = items.into_iter().collect();
        if self.left_out != items {
            self.system.leave_out(&items);
            self.left_out = items;
            self.frame = None;
        }
    }

    /// Encodes what is new of these messages, which begin with those of the transcript.
    fn encode(
        &self,
        history: &mut EncodedHistory,
        spec: &ModelSpec,
        transcript: &Transcript,
        messages: &[Arc<Message>],
    ) {
        let generation = transcript.generation();
        if self.left_out.is_empty() {
            return history.extend(spec, generation, messages);
        }
        let mut hasher = DefaultHasher::new();
        self.left_out.hash(&mut hasher);
        let messages = transcript.leaving_out(messages, &self.left_out);
        history.extend(spec, generation ^ hasher.finish(), &messages);
    }

    /// The body of the next request. `sample` is the prefix that the sessions of this model share.
    pub(crate) fn body(
        &mut self,
        toolset: &Toolset,
        spec: &Arc<ModelSpec>,
        transcript: &Transcript,
        tools_off: bool,
        sample: Option<&Sample>,
    ) -> RequestBody {
        self.encode_all(spec, transcript);
        let (prefix, suffix) = self.frame(toolset, spec, tools_off, sample);
        RequestBody::new(prefix, &self.history, suffix)
    }

    /// The body of a question at the end of the conversation: its prefix is that of the session's own requests.
    pub(crate) fn asking(
        &mut self,
        toolset: &Toolset,
        spec: &Arc<ModelSpec>,
        transcript: &Transcript,
        question: &str,
        sample: Option<&Sample>,
    ) -> RequestBody {
        self.encode_all(spec, transcript);
        let mut history = self.history.clone();
        self.encode(&mut history, spec, transcript, &transcript.asking(question));
        // Offering the tools otherwise than the last request did would also break the prefix.
        let tools_off = self.frame.as_ref().is_some_and(|frame| frame.tools_off);
        let (prefix, suffix) = self.frame(toolset, spec, tools_off, sample);
        RequestBody::new(prefix, &history.read_once(), suffix)
    }

    /// The body of the next request, including everything already known to join it. Nothing of it is cached: the cache has
    /// what was sent.
    pub(crate) fn ahead(&self, toolset: &Toolset, spec: &ModelSpec, transcript: &Transcript) -> RequestBody {
        let mut history = self.history.clone();
        self.encode(&mut history, spec, transcript, &transcript.upcoming());
        let tools = self.definitions(toolset);
        let params = Params {
            cache_key: &self.cache_key,
            ..Params::default()
        };
        let prompt = self.system.prompt();
        RequestBody::new(
            encode_prefix(spec, &prompt, &tools, &params),
            &history,
            encode_suffix(spec, &tools, &params),
        )
    }

    fn encode_all(&mut self, spec: &ModelSpec, transcript: &Transcript) {
        let mut history = std::mem::take(&mut self.history);
        self.encode(&mut history, spec, transcript, transcript.messages());
        self.history = history;
    }

    /// The definitions of the offered tools, without those that the provider refused.
    fn definitions(&self, toolset: &Toolset) -> Vec<ToolDef> {
        let mut tools = definitions(toolset.registry(), toolset.offered());
        tools.retain(|tool| {
            let item = |one: &RequestItem| matches!(one, RequestItem::Tool { name } if *name == tool.name);
            !self.left_out.iter().any(item)
        });
        tools
    }

    fn frame(
        &mut self,
        toolset: &Toolset,
        spec: &Arc<ModelSpec>,
        tools_off: bool,
        sample: Option<&Sample>,
    ) -> (Prefix, Bytes) {
        if let Some(frame) = &self.frame
            && Arc::ptr_eq(&frame.spec, spec)
            && frame.tools_off == tools_off
            && frame.toolset == toolset.id()
        {
            return (frame.prefix.clone(), frame.suffix.clone());
        }
        let tools = self.definitions(toolset);
        let params = Params {
            tool_choice: if tools_off {
                ToolChoice::Off
            } else {
                ToolChoice::Unsaid
            },
            cache_key: &self.cache_key,
            ..Params::default()
        };
        let prompt = self.system.prompt();
        let nothing = Bytes::new();
        let common = sample.map_or(&nothing, |sample| {
            sample.get_or_init(|| encode_prefix(spec, &Prompt::default(), &tools, &params))
        });
        let frame = Frame {
            spec: Arc::clone(spec),
            tools_off,
            toolset: toolset.id(),
            prefix: Prefix::sharing(&encode_prefix(spec, &prompt, &tools, &params), common),
            suffix: encode_suffix(spec, &tools, &params),
        };
        let pieces = (frame.prefix.clone(), frame.suffix.clone());
        self.frame = Some(frame);
        pieces
    }
}

/// The offered tools in the registry's order, so that the bytes do not depend on how the session was created.
fn definitions(registry: &Registry, offered: &[String]) -> Vec<ToolDef> {
    let offered = |name: &str| offered.iter().any(|tool| tool == name);
    let definition = |tool: &ToolEntry| ToolDef {
        name: tool.spec().name.clone().into_owned(),
        description: tool.spec().description.clone(),
        schema: tool.sent_schema(),
    };
    registry
        .entries()
        .filter(|tool| offered(&tool.spec().name))
        .map(definition)
        .collect()
}

#[cfg(test)]
mod tests;
