//! The Messages protocol of Anthropic.

mod request;
mod stream;

pub(crate) use request::{message, prefix};
pub(crate) use stream::AnthropicStream;

use crate::spec::ModelSpec;

/// The version of the protocol that is spoken here.
const VERSION: &str = "2023-06-01";

/// The address of a call.
pub(crate) fn url(spec: &ModelSpec) -> String {
    format!("{}/v1/messages", spec.base_url.trim_end_matches('/'))
}

/// The headers of a call, the key among them.
pub(crate) fn headers(spec: &ModelSpec) -> Vec<(&'static str, String)> {
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    if let Some(credential) = spec.credential() {
        headers.push(("x-api-key", credential.secret.expose().to_owned()));
    }
    headers
}
