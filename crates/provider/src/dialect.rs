//! What every dialect can do: one codec each, one reader per answer. Everything else is the same for all.

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

/// How the frames of a streamed answer are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON object a line.
    Lines,
}

/// How a dialect asks.
pub(crate) trait Codec: Sync {
    /// The address of a call.
    fn url(&self, spec: &ModelSpec) -> String;
    /// The headers of a call, the key among them; most servers want it as a bearer's.
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
    /// One message on its own, as JSON objects joined by commas. `after_text`: the one before it left its text open.
    fn message(&self, spec: &ModelSpec, message: &Message, after_text: bool) -> Encoded;
    /// The same, for dialects whose results repeat what the call said: `asked` is the last answer that had calls.
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
    /// A request whose answer the call needs.
    fn preparation(&self) -> Option<&'static dyn Preparation> {
        None
    }
    /// How a streamed answer is cut into frames.
    fn framing(&self) -> Framing {
        Framing::Events
    }
    /// A reader for one answer.
    fn reader(&self) -> Box<dyn Reader>;
    /// The same, for dialects whose answers are read in the light of the model's limits.
    fn reader_of(&self, _spec: &ModelSpec) -> Box<dyn Reader> {
        self.reader()
    }
}

/// What is asked of the server before the model is asked.
pub(crate) trait Preparation: Sync {
    /// The address.
    fn url(&self, spec: &ModelSpec) -> String;
    /// The body of the call, from the body that was asked with and the answer.
    fn body(&self, asked: &RequestBody, answer: &Value) -> Result<RequestBody, ModelError>;
}

/// How a dialect answers: frame by frame, or all at once.
pub(crate) trait Reader: Debug + Send {
    /// Takes one frame of a streamed answer. `name` is the event's, empty where there is none.
    fn frame(
        &mut self,
        name: &str,
        frame: Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError>;
    /// The server sent `[DONE]`. It ends the answers of dialects without an end of their own and means nothing in others.
    fn done(&mut self) {}
    /// Takes an answer that came in one piece; [`Self::finish`] follows.
    fn whole(&mut self, body: Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError>;
    /// Whether the terminal marker has come. No frame follows then.
    fn is_complete(&self) -> bool;
    /// The tokens that were counted so far.
    fn usage(&self) -> Usage;
    /// The answer, if it is complete.
    fn finish(self: Box<Self>) -> Result<Outcome, ModelError>;
}

/// The codec of a dialect; none for scripts, which are not sent anywhere.
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
