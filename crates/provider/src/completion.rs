//! llama.cpp's own completion API: the server renders the messages into a prompt, then completes it. This takes two
//! requests, because only a raw prompt can be constrained to a grammar; the prompt text describes the tools.

mod request;
mod stream;

use crate::address::beside;
use crate::body::{Encoded, Params, Prompt, RequestBody, ToolDef};
use crate::dialect::{Codec, Preparation, Reader};
use crate::error::ModelError;
use crate::spec::ModelSpec;
use agentd_protocol::Message;
use bytes::Bytes;
use serde_json::Value;
use stream::CompletionStream;

/// The dialect.
pub(crate) struct Completion;

impl Codec for Completion {
    fn url(&self, spec: &ModelSpec) -> String {
        beside(&spec.base_url, "completion")
    }

    fn prefix(&self, spec: &ModelSpec, prompt: &Prompt<'_>, _: &[ToolDef], _: &Params<'_>) -> Bytes {
        request::prefix(spec, prompt)
    }

    fn message(&self, spec: &ModelSpec, message: &Message, after_text: bool) -> Encoded {
        request::message(spec, message, after_text)
    }

    fn suffix(&self, spec: &ModelSpec, _: &[ToolDef], params: &Params<'_>) -> Bytes {
        request::suffix(spec, params)
    }

    fn preparation(&self) -> Option<&'static dyn Preparation> {
        Some(&Template)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<CompletionStream>::default()
    }

    fn reader_of(&self, spec: &ModelSpec) -> Box<dyn Reader> {
        Box::new(CompletionStream::new(spec.context_window))
    }
}

/// The model's chat template, which the server applies.
struct Template;

impl Preparation for Template {
    fn url(&self, spec: &ModelSpec) -> String {
        beside(&spec.base_url, "apply-template")
    }

    fn body(&self, asked: &RequestBody, answer: &Value) -> Result<RequestBody, ModelError> {
        request::with_prompt(asked, answer)
    }
}

#[cfg(test)]
mod tests;
