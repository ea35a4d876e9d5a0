//! The Messages protocol of Anthropic.

pub(crate) mod request;
mod stream;

use crate::address::join;
use crate::body::{Encoded, Params, Prompt, ToolDef};
use crate::dialect::{Codec, Reader};
use crate::spec::{Credential, ModelSpec};
use agentd_protocol::Message;
use bytes::Bytes;
use stream::AnthropicStream;

/// The protocol version that this codec speaks.
const VERSION: &str = "2023-06-01";

/// The dialect.
pub(crate) struct Anthropic;

impl Codec for Anthropic {
    fn url(&self, spec: &ModelSpec) -> String {
        join(&spec.base_url, "v1/messages")
    }

    fn headers(&self, _: &ModelSpec, credential: Option<&Credential>) -> Vec<(&'static str, String)> {
        let mut headers = vec![("anthropic-version", VERSION.to_owned())];
        headers.extend(credential.map(|credential| {
            let secret = credential.secret.expose();
            // An OAuth token is not an API key: the server refuses it in `x-api-key`.
            if credential.found_in.ends_with("AUTH_TOKEN") || secret.starts_with("sk-ant-oat") {
                ("authorization", format!("Bearer {secret}"))
            } else {
                ("x-api-key", secret.to_owned())
            }
        }));
        headers
    }

    fn prefix(&self, spec: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
        request::prefix(spec, prompt, tools, params)
    }

    fn message(&self, spec: &ModelSpec, message: &Message, _: bool) -> Encoded {
        request::message(spec, message)
    }

    fn suffix(&self, spec: &ModelSpec, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
        request::suffix(spec, tools, params)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<AnthropicStream>::default()
    }
}
