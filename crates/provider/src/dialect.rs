//! The interface of a dialect: a codec for requests, and a reader for each answer. Everything else is shared.

use crate::body::{Encoded, Params, Prompt, RequestBody, ToolDef};
use crate::decoder::{Outcome, Progress};
use crate::error::ModelError;
use crate::reply::ModelEvent;
use crate::spec::{Credential, ModelSpec};
use crate::{anthropic, chat, completion, gemini, ollama, responses};
use agentd_protocol::{Message, Usage};
use agentd_settings::Dialect;
use bytes::Bytes;
use serde_json::Value;
use std::fmt::Debug;

/// How a streamed answer is split into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON object per line.
    Lines,
}

/// Encodes the requests of a dialect.
pub(crate) trait Codec: Sync {
    /// The URL of a call.
    fn url(&self, spec: &ModelSpec) -> String;
    /// The headers of a call, including the key; most servers want it as a bearer token.
    fn headers(&self, spec: &ModelSpec, credential: Option<&Credential>) -> Vec<(&'static str, String)> {
        let header = |credential: &Credential| {
            let key = credential.secret.expose();
            if spec.compat.api_key_header {
                ("api-key", key.to_owned())
            } else {
                ("authorization", format!("Bearer {key}"))
            }
        };
        credential.map(header).into_iter().collect()
    }
    /// Everything before the messages. The same arguments give the same bytes.
    fn prefix(&self, spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], params: &Params<'_>) -> Bytes;
    /// One message on its own, as JSON objects joined by commas. `after_text`: the previous message left its text open.
    fn message(&self, spec: &ModelSpec, message: &Message, after_text: bool) -> Encoded;
    /// The same, for dialects whose results repeat the name of the call: `asked` is the last answer with tool calls.
    fn message_after(
        &self,
        spec: &ModelSpec,
        message: &Message,
        after_text: bool,
        _asked: Option<&Message>,
    ) -> Encoded {
        self.message(spec, message, after_text)
    }
    /// Everything after the messages.
    fn suffix(&self, spec: &ModelSpec, tools: &[ToolDef], params: &Params<'_>) -> Bytes;
    /// A preparatory request whose answer the call needs.
    fn preparation(&self) -> Option<&'static dyn Preparation> {
        None
    }
    /// How a streamed answer is split into frames.
    fn framing(&self) -> Framing {
        Framing::Events
    }
    /// A reader for one answer.
    fn reader(&self) -> Box<dyn Reader>;
    /// The same, for dialects that need the model's limits to interpret an answer.
    fn reader_of(&self, _spec: &ModelSpec) -> Box<dyn Reader> {
        self.reader()
    }
}

/// A request to the server that precedes the model call.
pub(crate) trait Preparation: Sync {
    /// The URL.
    fn url(&self, spec: &ModelSpec) -> String;
    /// Builds the body of the call from the body that was sent (`asked`) and the answer.
    fn body(&self, asked: &RequestBody, answer: &Value) -> Result<RequestBody, ModelError>;
}

/// Reads a dialect's answers: frame by frame, or whole.
pub(crate) trait Reader: Debug + Send {
    /// Takes one frame of a streamed answer. `name` is the event's name, or empty.
    fn frame(
        &mut self,
        name: &str,
        frame: Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError>;
    /// The server sent `[DONE]`. It ends the answer in dialects that have no terminal marker and is ignored in others.
    fn done(&mut self) {}
    /// Takes an answer that was not streamed; [`Self::finish`] follows.
    fn whole(&mut self, body: Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError>;
    /// Whether the terminal marker has arrived. No frame follows it.
    fn is_complete(&self) -> bool;
    /// The tokens counted so far.
    fn usage(&self) -> Usage;
    /// The answer, if it is complete.
    fn finish(self: Box<Self>) -> Result<Outcome, ModelError>;
}

/// The codec of a dialect; none for scripts, which are not sent to a server.
pub(crate) fn codec(dialect: Dialect) -> Option<&'static dyn Codec> {
    match dialect {
        Dialect::Anthropic => Some(&anthropic::Anthropic),
        Dialect::OpenaiChat => Some(&chat::Chat),
        Dialect::OpenaiResponses => Some(&responses::Responses),
        Dialect::Gemini => Some(&gemini::Gemini),
        Dialect::LlamaCompletion => Some(&completion::Completion),
        Dialect::Ollama => Some(&ollama::Ollama),
        Dialect::Scripted => None,
    }
}

#[cfg(test)]
mod tests;
