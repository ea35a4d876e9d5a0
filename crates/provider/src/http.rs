//! The HTTP client of the process.

use crate::error::ProviderError;
use agentd_name_lookup::Names;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Identity};
use std::time::Duration;

/// Idle connections kept per server.
const IDLE_PER_HOST: usize = 32;
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Builds the client. Build one and share it, so that connections are reused. It has no total time-out, because
/// answers stream for minutes; each call has its own deadlines.
///
/// # Errors
/// When the TLS set-up of this machine does not work.
pub fn http_client(connect: Duration) -> Result<Client, ProviderError> {
    builder(connect)
        .build()
        // A machine without root certificates can still reach local servers; TLS then fails with a clear error.
        .or_else(|_| builder(connect).tls_certs_only(std::iter::empty()).build())
        .map_err(ProviderError::Client)
}

/// Builds a client that shows a certificate and trusts only these roots. `identity` is a certificate chain and its key, both
/// and the roots in PEM format.
///
/// # Errors
/// When one of them cannot be read.
pub fn client_with_certificate(
    connect: Duration,
    identity: &[u8],
    roots: &[u8],
) -> Result<Client, ProviderError> {
    let client = Identity::from_pem(identity).and_then(|identity| {
        let roots = Certificate::from_pem_bundle(roots)?;
        builder(connect).identity(identity).tls_certs_only(roots).build()
    });
    client.map_err(ProviderError::Client)
}

fn builder(connect: Duration) -> ClientBuilder {
    // An error means that another caller already installed a provider, which is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(connect)
        .dns_resolver(Names::of_operator())
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .pool_idle_timeout(KEEPALIVE)
        .tcp_keepalive(KEEPALIVE)
        .tcp_nodelay(true)
        // Following a redirect would send the key to any address that the server names.
        .redirect(Policy::none())
        // A compressed stream arrives in bursts.
        .gzip(false)
        .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
}
