//! Chat Completions: the protocol of OpenAI, which most other servers speak with variations.

mod calls;
pub(crate) mod message;
mod reasoning;
pub(crate) mod request;
mod stream;

use crate::address::join;
use crate::body::{Encoded, Params, Prompt, ToolDef};
use crate::dialect::{Codec, Reader};
use crate::spec::ModelSpec;
use agentd_protocol::Message;
use bytes::Bytes;
use stream::ChatStream;

/// The dialect.
pub(crate) struct Chat;

impl Codec for Chat {
    fn url(&self, spec: &ModelSpec) -> String {
        join(&spec.base_url, "chat/completions")
    }

    fn prefix(&self, spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
        request::prefix(spec, prompt, tools, params)
    }

    fn message(&self, spec: &ModelSpec, message: &Message, after_text: bool) -> Encoded {
        message::message(spec, message, after_text)
    }

    fn suffix(&self, spec: &ModelSpec, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
        request::suffix(spec, tools, params)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<ChatStream>::default()
    }
}
