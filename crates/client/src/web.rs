//! The way to a daemon on another machine: the same frames over WebSocket, one in each binary message.

use crate::connect::{ConnectOptions, Greeted};
use crate::error::ClientError;
use crate::transport::{Incoming, Outgoing};
use agentd_protocol::{ClearToken, Fault, FaultClass};
use agentd_wire::FrameLimits;
use futures_util::StreamExt as _;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use serde::Deserialize;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Response, Uri, header::AUTHORIZATION};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, http};
use tokio_tungstenite::{Connector, connect_async_tls_with_config};

/// Where the wire is below a daemon's address.
const PATH: &str = "/v1/wire";

/// A daemon on another machine, and the token for it.
#[derive(Clone)]
pub struct Remote {
    url: Uri,
    token: ClearToken,
    authorities: Vec<CertificateDer<'static>>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// A daemon at `https://HOST:PORT`; `http://` only on this machine, because the token would travel unprotected.
    /// `authorities` are certificates in PEM that are trusted in addition to the system's.
    ///
    /// # Errors
    /// The error in the address or the certificates.
    pub fn new(address: &str, token: ClearToken, authorities: Option<&[u8]>) -> Result<Self, Fault> {
        let url = wire_url(address)?;
        let read = |pem: &[u8]| CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let authorities = authorities.map(read).transpose();
        let authorities = authorities.map_err(|error| {
            Fault::invalid(
                "bad_certificates",
                format!("cannot read the certificates: {error}"),
            )
            .hint("a certificate file must be in PEM format: -----BEGIN CERTIFICATE-----")
        })?;
        Ok(Self {
            url,
            token,
            authorities: authorities.unwrap_or_default(),
        })
    }

    fn connector(&self) -> Result<Connector, ClientError> {
        if self.url.scheme_str() == Some("ws") {
            return Ok(Connector::Plain);
        }
        let unreachable = |why: String| self.unreachable(why);
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots.add_parsable_certificates(self.authorities.iter().cloned());
        if roots.is_empty() {
            return Err(unreachable("this machine has no CA certificates".to_owned()));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unreachable(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Connector::Rustls(Arc::new(config)))
    }

    fn unreachable(&self, why: String) -> ClientError {
        ClientError::Unreachable {
            address: self.address().to_owned(),
            why,
        }
    }

    fn address(&self) -> &str {
        self.url.authority().map_or("", http::uri::Authority::as_str)
    }
}

/// The address of the wire of a daemon.
///
/// # Errors
/// The error in the address.
fn wire_url(address: &str) -> Result<Uri, Fault> {
    let bad = |why: &str| {
        Fault::invalid(
            "bad_address",
            format!("{address:?} is not the address of a daemon: {why}"),
        )
        .hint("write https://HOST:7433")
    };
    let url: Uri = address
        .parse()
        .map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
    let host = url.host().ok_or_else(|| bad("it has no host"))?;
    if url
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return Err(bad("it has a user or a password"));
    }
    let scheme = match url.scheme_str() {
        Some("https") => "wss",
        Some("http") if is_here(host) => "ws",
        Some("http") => return Err(bad("without TLS the token would travel unprotected")),
        _ => return Err(bad("it does not begin with https://")),
    };
    if url.query().is_some() {
        return Err(bad("it has a query"));
    }
    let base = url.path().trim_end_matches('/');
    let authority = url.authority().map_or(host, http::uri::Authority::as_str);
    let built = Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(format!("{base}{PATH}"));
    built.build().map_err(|error| bad(&error.to_string()))
}

/// Whether a host is this machine.
fn is_here(host: &str) -> bool {
    let ip = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

pub(crate) async fn greet(remote: &Remote, options: &ConnectOptions) -> Result<Greeted, ClientError> {
    let attempt = async {
        let bad = |error: String| remote.unreachable(error);
        let mut request = remote
            .url
            .clone()
            .into_client_request()
            .map_err(|error| bad(error.to_string()))?;
        let bearer = format!("Bearer {}", remote.token.expose());
        let mut bearer = HeaderValue::try_from(bearer)
            .map_err(|_| bad("the token contains characters that are not allowed in tokens".to_owned()))?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, bearer);
        let most = FrameLimits::of_answers().max_frame_bytes;
        let config = WebSocketConfig::default()
            .max_message_size(Some(most))
            .max_frame_size(Some(most));
        let connector = Some(remote.connector()?);
        let connected = connect_async_tls_with_config(request, Some(config), false, connector).await;
        let (socket, _) = connected.map_err(|error| match error {
            Error::Http(response) => refused(remote, &response),
            other => match certificate_error(&other) {
                Some(why) => ClientError::Untrusted {
                    address: remote.address().to_owned(),
                    why,
                },
                None => bad(other.to_string()),
            },
        })?;
        let (write, read) = socket.split();
        crate::connect::say_hello(Incoming::web(read), Outgoing::web(write), options).await
    };
    tokio::time::timeout(options.deadline, attempt)
        .await
        .unwrap_or_else(|_| {
            let why = format!("no welcome within {} ms", options.deadline.as_millis());
            Err(remote.unreachable(why))
        })
}

/// The error in the server's certificate, if the connection failed because of it.
fn certificate_error(error: &Error) -> Option<String> {
    let Error::Io(error) = error else { return None };
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    match error {
        rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer) => {
            Some("no authority that this machine trusts has signed it".to_owned())
        }
        rustls::Error::InvalidCertificate(why) => Some(why.to_string()),
        _ => None,
    }
}

/// The parts of a problem document that a fault has.
#[derive(Deserialize)]
struct Problem {
    class: FaultClass,
    code: String,
    detail: String,
    hint: Option<String>,
}

/// The reason why a daemon, or a proxy in front of it, refuses the connection.
fn refused(remote: &Remote, response: &Response<Option<Vec<u8>>>) -> ClientError {
    let body = response.body().as_deref().unwrap_or_default();
    if let Ok(problem) = serde_json::from_slice::<Problem>(body) {
        let mut fault = Fault::new(problem.class, &problem.code, problem.detail);
        fault.hint = problem.hint;
        return ClientError::Refused(fault);
    }
    match response.status().as_u16() {
        401 => {
            let fault = Fault::denied("bad_token", "the token is not valid");
            ClientError::Refused(fault.hint("it may be revoked or expired; ask the operator for a new one"))
        }
        403 => ClientError::Refused(Fault::denied("refused", "the daemon refuses the connection")),
        status => remote.unreachable(format!("it responded with status {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i8_a_token_is_sent_only_over_tls_or_to_this_machine() {
        let url = |text| {
            wire_url(text)
                .map(|url| url.to_string())
                .map_err(|fault| fault.code)
        };
        for (address, expected) in [
            ("https://host:7433", "wss://host:7433/v1/wire"),
            ("https://host/agents/", "wss://host/agents/v1/wire"),
            ("http://127.0.0.1:7433", "ws://127.0.0.1:7433/v1/wire"),
            ("http://[::1]:7433/", "ws://[::1]:7433/v1/wire"),
            ("http://localhost:7433", "ws://localhost:7433/v1/wire"),
        ] {
            assert_eq!(url(address), Ok(expected.to_owned()), "{address}");
        }
        for bad in [
            "http://host:7433",
            "http://127.0.0.1.example.org",
            "host:7433",
            "ftp://host",
            "",
            "https://",
            "https://ana:secret@host",
            "https://host?token=x",
        ] {
            assert_eq!(url(bad), Err("bad_address".to_owned()), "{bad}");
        }
    }

    #[test]
    fn a_certificate_of_an_unknown_authority_is_no_missing_daemon() {
        let failed = |error: rustls::Error| {
            certificate_error(&Error::Io(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                error,
            )))
        };
        let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let why = failed(unknown).unwrap();
        let fault = Fault::from(ClientError::Untrusted {
            address: "web1:7433".to_owned(),
            why,
        });
        assert_eq!(
            fault.message,
            "the certificate of web1:7433 is not accepted: no authority that this machine trusts has signed it"
        );
        assert!(fault.hint.unwrap().contains("--ca-file FILE"));
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        assert!(failed(expired).unwrap().contains("xpired"));
        assert_eq!(failed(rustls::Error::DecryptError), None);
        assert_eq!(certificate_error(&Error::ConnectionClosed), None);
    }
}
