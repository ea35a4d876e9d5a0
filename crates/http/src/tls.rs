//! TLS: certificates that follow their files.

use crate::error::HttpError;
use agentd_settings::TlsFiles;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;
use tokio_rustls::TlsAcceptor;

/// What tells two versions of the files apart: the time and the size of each.
type Version = [Option<(SystemTime, u64)>; 2];

/// The certificate and the key, as their files have them.
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
    let mut version = [None; 2];
    for (entry, path) in version.iter_mut().zip([&files.cert, &files.key]) {
        if let Ok(found) = tokio::fs::metadata(path).await {
            *entry = found.modified().ok().map(|time| (time, found.len()));
        }
    }
    version
}

async fn read(files: &TlsFiles) -> Result<TlsAcceptor, HttpError> {
    let wrong = |path: &str, why: String| HttpError::Tls {
        path: path.to_owned(),
        why,
    };
    let (cert, key) = (files.cert.as_str(), files.key.as_str());
    let text = tokio::fs::read(cert)
        .await
        .map_err(|error| wrong(cert, error.to_string()))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| wrong(cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(cert, "it contains no certificate in PEM format".to_owned()));
    }
    let text = tokio::fs::read(key)
        .await
        .map_err(|error| wrong(key, error.to_string()))?;
    let private = PrivateKeyDer::from_pem_slice(&text).map_err(|error| wrong(key, error.to_string()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
    let mut config = config.map_err(|error| wrong(cert, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
