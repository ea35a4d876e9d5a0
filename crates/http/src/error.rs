//! Errors of opening the HTTP address.

use std::net::SocketAddr;

/// Why HTTP cannot be served as configured.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Another program has the configured address.
    #[error(
        "http.listen = {0}: another program listens there; stop it, choose another port, or set http.listen = \"off\""
    )]
    InUse(SocketAddr),
    /// The text is not an address.
    #[error("http.listen = {0:?} is not an address; write ADDRESS:PORT, such as 127.0.0.1:7433, or off")]
    NotAnAddress(String),
    /// Tokens would cross a network in clear text.
    #[error(
        "http.listen = {0} is reachable from other machines, and tokens would travel unencrypted; set http.tls, or \
         http.behind_proxy = true if a proxy in front of agentd speaks TLS"
    )]
    Unencrypted(SocketAddr),
    /// A file for TLS cannot be used.
    #[error("http.tls: {path}: {why}")]
    Tls {
        /// The file.
        path: String,
        /// The cause.
        why: String,
    },
    /// The system returned an error.
    #[error("http.listen = {address}: {source}")]
    Io {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
}
