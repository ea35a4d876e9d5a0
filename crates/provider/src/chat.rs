//! Chat Completions: the protocol of OpenAI that most other servers speak in their own way.

mod calls;
mod request;
mod stream;

pub(crate) use request::{message, prefix};
pub(crate) use stream::ChatStream;

use crate::spec::ModelSpec;

/// The address of a call.
pub(crate) fn url(spec: &ModelSpec) -> String {
    format!("{}/chat/completions", spec.base_url.trim_end_matches('/'))
}

/// The headers of a call, the key among them.
pub(crate) fn headers(spec: &ModelSpec) -> Vec<(&'static str, String)> {
    let bearer = |key: &str| ("authorization", format!("Bearer {key}"));
    spec.credential()
        .map(|credential| bearer(credential.secret.expose()))
        .into_iter()
        .collect()
}
