//! The errors of fetching a page; the messages are for the model.

use std::time::Duration;

/// Why a page was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The text is not an address, or is written ambiguously.
    #[error("cannot fetch the address {0:?}: {1}")]
    Address(String, &'static str),
    /// The address may not be reached.
    #[error("access to {place} is not allowed: {why}")]
    Refused {
        /// The host, with its address if it was looked up.
        place: String,
        /// Why it is refused.
        why: &'static str,
    },
    /// A rule forbids the target of a redirect.
    #[error("it redirects to {0}, which is not allowed: {1}")]
    Forbidden(String, String),
    /// The host's name could not be looked up.
    #[error("cannot find the host {host}: {why}")]
    Unknown {
        /// The name.
        host: String,
        /// The system's error message.
        why: String,
    },
    /// The fetch exceeded its deadline.
    #[error("the server did not finish within {} ms", .0.as_millis())]
    Slow(Duration),
    /// Too many redirects in a row.
    #[error("more than {0} redirects in a row")]
    Redirects(u32),
    /// The body is not text.
    #[error(
        "unsupported content type {0}: only text (HTML, JSON, XML, plain text, source code) is supported"
    )]
    NotText(String),
    /// The body is compressed, though the request did not allow that.
    #[error("unsupported content encoding {0}")]
    Encoded(String),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(String),
    /// The HTTP client or its TLS set-up is unusable.
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
    /// An entry of the configuration is invalid.
    #[error("tools.web.allow_private contains {0:?}, which is not a network, address or host")]
    Config(String),
}

#[cfg(feature = "fetch")]
impl WebError {
    /// The innermost cause of a failed request, without its address.
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        let mut inner: &dyn std::error::Error = error;
        while let Some(source) = inner.source() {
            inner = source;
        }
        Self::Connection(inner.to_string())
    }
}
