//! OpenAI's Responses protocol, used statelessly: each request carries the whole conversation.

mod ending;
mod item;
mod items;
mod request;
mod stream;

use crate::address::join;
use crate::body::{Encoded, Params, Prompt, ToolDef};
use crate::dialect::{Codec, Reader};
use crate::spec::ModelSpec;
use agentd_protocol::Message;
use bytes::Bytes;
use stream::ResponsesStream;

/// The dialect.
pub(crate) struct Responses;

impl Codec for Responses {
    fn url(&self, spec: &ModelSpec) -> String {
        join(&spec.base_url, "responses")
    }

    fn prefix(&self, spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], _: &Params<'_>) -> Bytes {
        request::prefix(spec, prompt, tools)
    }

    fn message(&self, spec: &ModelSpec, message: &Message, _: bool) -> Encoded {
        request::message(spec, message)
    }

    fn suffix(&self, spec: &ModelSpec, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
        request::suffix(spec, tools, params)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<ResponsesStream>::default()
    }
}

#[cfg(test)]
mod tests;
