//! The generateContent protocol of Gemini.

mod config;
mod parts;
mod replay;
mod request;
mod stream;

use crate::address::{join, path_of};
use crate::body::{Encoded, Params, Prompt, ToolDef};
use crate::dialect::{Codec, Reader};
use crate::spec::{Credential, ModelSpec};
use agentd_protocol::Message;
use bytes::Bytes;
use stream::GeminiStream;

/// The protocol version that this codec speaks, for URLs that name none.
const VERSION: &str = "v1beta/";

/// The URL of a method of a model.
pub(crate) fn address(spec: &ModelSpec, method: &str) -> String {
    let versioned = path_of(&spec.base_url)
        .rsplit('/')
        .next()
        .and_then(|last| last.strip_prefix('v'))
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let version = if versioned { "" } else { VERSION };
    // The name of a tuned model includes its collection.
    let collection = if spec.model.contains('/') { "" } else { "models/" };
    join(
        &spec.base_url,
        &format!("{version}{collection}{}:{method}", spec.model),
    )
}

/// The dialect.
pub(crate) struct Gemini;

impl Codec for Gemini {
    fn url(&self, spec: &ModelSpec) -> String {
        let method = if spec.stream {
            "streamGenerateContent?alt=sse"
        } else {
            "generateContent"
        };
        address(spec, method)
    }

    fn headers(&self, _: &ModelSpec, credential: Option<&Credential>) -> Vec<(&'static str, String)> {
        let key = |credential: &Credential| ("x-goog-api-key", credential.secret.expose().to_owned());
        credential.map(key).into_iter().collect()
    }

    fn prefix(&self, _: &ModelSpec, prompt: &Prompt<'_>, tools: &[ToolDef], _: &Params<'_>) -> Bytes {
        request::prefix(prompt, tools)
    }

    fn message(&self, spec: &ModelSpec, message: &Message, _: bool) -> Encoded {
        request::message(spec, message, None)
    }

    fn message_after(
        &self,
        spec: &ModelSpec,
        message: &Message,
        _: bool,
        asked: Option<&Message>,
    ) -> Encoded {
        request::message(spec, message, asked)
    }

    fn suffix(&self, spec: &ModelSpec, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
        config::suffix(spec, tools, params)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<GeminiStream>::default()
    }
}

#[cfg(test)]
mod tests;
