//! `[http]`: the HTTP API.

use serde::{Deserialize, Serialize};

/// `[http]`: where the HTTP API listens, and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// `ADDRESS:PORT`, or `off`.
    pub listen: String,
    /// A proxy in front of agentd speaks TLS with the clients.
    pub behind_proxy: bool,
    /// The files for TLS; empty: no TLS.
    pub tls: TlsFiles,
    /// Names and addresses of this server, in addition to `localhost` and the address at which it listens.
    pub hosts: Vec<String>,
    /// Origins of web pages that may use the API.
    pub origins: Vec<String>,
    /// Concurrent connections; a further one replaces the one that does the least.
    pub connections: u32,
    /// How many of these only clients that have shown a token keep; at most half.
    pub connections_known: u32,
    /// How long a new connection cannot be replaced.
    pub grace_ms: u64,
    /// Concurrent event streams of one token.
    pub streams_per_token: u32,
    /// Sessions that one stream of `/v1/stream` follows.
    pub sessions_per_stream: u32,
    /// Requests per second of one token.
    pub requests_per_second: u32,
    /// Answers kept in memory for the idempotency keys of one token.
    pub keys_per_token: u32,
    /// How long they are kept.
    pub key_seconds: u64,
    /// How long a repetition waits for the request that it repeats.
    pub key_wait_ms: u64,
    /// The largest body of a request.
    pub max_body_bytes: u64,
    /// The time limit for the headers of a request, and for an idle connection.
    pub header_ms: u64,
    /// The time limit for the body of a request.
    pub body_ms: u64,
    /// How long a request waits for the memory of its body.
    pub body_wait_ms: u64,
    /// The time limit for the body of a sign-in, whose client has no token yet.
    pub sign_in_ms: u64,
    /// How long a client may take nothing while there is something for it.
    pub stall_ms: u64,
}

/// The files for TLS, in PEM format. The certificate and the key: both or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate chain.
    pub cert: String,
    /// The private key.
    pub key: String,
    /// The root certificates of the fleet. If set, each node shows its certificate to the others, and one of these must have
    /// signed it.
    pub nodes: String,
}

impl TlsFiles {
    /// Whether TLS is configured.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        !self.cert.is_empty()
    }
}
