//! What goes wrong when a page is fetched; the messages are for the model.

use std::time::Duration;

/// Why a page was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The text is no address, or is not written plainly.
    #[error("{0:?} is no address that can be fetched: {1}")]
    Address(String, &'static str),
    /// The address may not be reached.
    #[error("{place} may not be reached: {why}")]
    Refused {
        /// The host, with the address that it stands for when that was looked up.
        place: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A redirect leads to where the rules forbid.
    #[error("it redirects to {0}, which may not be fetched: {1}")]
    Forbidden(String, String),
    /// The host's name could not be looked up.
    #[error("the host {host} was not found: {why}")]
    Unknown {
        /// The name.
        host: String,
        /// What the system said.
        why: String,
    },
    /// The time was over.
    #[error("the server did not finish within {} ms", .0.as_millis())]
    Slow(Duration),
    /// Too many redirects in a row.
    #[error("there were more than {0} redirects in a row")]
    Redirects(u32),
    /// What came is not text.
    #[error("what came is {0}, and only text (HTML, JSON, XML, plain text, source code) can be read")]
    NotText(String),
    /// What came is compressed, though that was not asked for.
    #[error("what came is encoded as {0}, which was not asked for and is not unpacked")]
    Encoded(String),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(String),
    /// The HTTP client or its TLS set-up is unusable.
    #[error("the web cannot be reached from here: {0}")]
    Client(#[source] reqwest::Error),
    /// The configuration opens a place that cannot be read.
    #[error("tools.web.allow_private has {0:?}, which is no network, address or host")]
    Config(String),
}

impl WebError {
    /// The innermost reason of a failed request, without its address.
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        let mut inner: &dyn std::error::Error = error;
        while let Some(source) = inner.source() {
            inner = source;
        }
        Self::Connection(inner.to_string())
    }
}
