//! TLS: certificates that follow their files.

use crate::error::HttpError;
use agentd_settings::TlsFiles;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;
use tokio_rustls::TlsAcceptor;

/// What tells two versions of the files apart: the time and the size of each.
type Version = [Option<(SystemTime, u64)>; 3];

/// The client of a connection has shown a certificate of the fleet. The router finds it among the extensions of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CertifiedNode;

/// The certificates and the key, as their files have them.
pub(crate) struct Tls {
    files: TlsFiles,
    version: Version,
    acceptor: TlsAcceptor,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files.
    pub(crate) async fn open(files: &TlsFiles) -> Result<Self, HttpError> {
        Ok(Self {
            files: files.clone(),
            version: version(files).await,
            acceptor: read(files).await?,
        })
    }

    /// The acceptor for the next connection. If the files have changed and are good, they are in force from now on.
    pub(crate) async fn acceptor(&mut self) -> TlsAcceptor {
        let version = version(&self.files).await;
        if version != self.version {
            self.version = version;
            match read(&self.files).await {
                Ok(acceptor) => {
                    tracing::info!(cert = self.files.cert, "reloaded the TLS certificate");
                    self.acceptor = acceptor;
                }
                Err(error) => tracing::error!(%error, "keeping the previous TLS certificate"),
            }
        }
        self.acceptor.clone()
    }
}

async fn version(files: &TlsFiles) -> Version {
    let mut version = Version::default();
    for (entry, path) in version.iter_mut().zip([&files.cert, &files.key, &files.nodes]) {
        if let Ok(found) = tokio::fs::metadata(path).await {
            *entry = found.modified().ok().map(|time| (time, found.len()));
        }
    }
    version
}

fn wrong(path: &str, why: impl fmt::Display) -> HttpError {
    HttpError::Tls {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

async fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, HttpError> {
    let text = tokio::fs::read(path).await.map_err(|error| wrong(path, error))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| wrong(path, error))?;
    if all.is_empty() {
        return Err(wrong(path, "it contains no certificate in PEM format"));
    }
    Ok(all)
}

/// Checks the certificates of clients. Only other nodes need one.
async fn verifier(nodes: &str) -> Result<Arc<dyn ClientCertVerifier>, HttpError> {
    if nodes.is_empty() {
        return Ok(WebPkiClientVerifier::no_client_auth());
    }
    let mut roots = RootCertStore::empty();
    for root in certificates(nodes).await? {
        roots.add(root).map_err(|error| wrong(nodes, error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()))
        .allow_unauthenticated()
        .build()
        .map_err(|error| wrong(nodes, error))
}

async fn read(files: &TlsFiles) -> Result<TlsAcceptor, HttpError> {
    let (cert, key) = (files.cert.as_str(), files.key.as_str());
    let chain = certificates(cert).await?;
    let text = tokio::fs::read(key).await.map_err(|error| wrong(key, error))?;
    let private = PrivateKeyDer::from_pem_slice(&text).map_err(|error| wrong(key, error))?;
    let verifier = verifier(&files.nodes).await?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            let builder = builder.with_client_cert_verifier(verifier);
            builder.with_single_cert(chain, private)
        });
    let mut config = config.map_err(|error| wrong(cert, error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
