//! Ollama's own protocol: unlike its compatibility layers, it lets the client set the size of the context.

mod request;
mod stream;

use crate::address::beside;
use crate::body::{Encoded, Params, Prompt, ToolDef};
use crate::dialect::{Codec, Framing, Reader};
use crate::spec::ModelSpec;
use agentd_protocol::Message;
use bytes::Bytes;
use stream::OllamaStream;

/// The dialect.
pub(crate) struct Ollama;

impl Codec for Ollama {
    fn url(&self, spec: &ModelSpec) -> String {
        beside(&spec.base_url, "api/chat")
    }

    fn prefix(&self, spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
        request::prefix(spec, prompt, tools, params)
    }

    fn message(&self, spec: &ModelSpec, message: &Message, after_text: bool) -> Encoded {
        request::message(spec, message, after_text, None)
    }

    fn message_after(
        &self,
        spec: &ModelSpec,
        message: &Message,
        after_text: bool,
        asked: Option<&Message>,
    ) -> Encoded {
        request::message(spec, message, after_text, asked)
    }

    fn suffix(&self, spec: &ModelSpec, _: &[ToolDef], params: &Params<'_>) -> Bytes {
        request::suffix(spec, params)
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<OllamaStream>::default()
    }

    fn reader_of(&self, spec: &ModelSpec) -> Box<dyn Reader> {
        Box::new(OllamaStream::new(spec.context_window))
    }
}

#[cfg(test)]
mod tests;
