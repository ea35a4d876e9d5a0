//! HTTP over TLS.

use crate::server::Http;
use agentd_http::{HttpError, bind};
use agentd_settings::{HttpConfig, TlsFiles};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Writes a new certificate for localhost and its key.
fn renew(dir: &Path) -> (TlsFiles, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let files = TlsFiles {
        cert: path("cert.pem"),
        key: path("key.pem"),
        nodes: String::new(),
    };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    (files, made.cert.der().clone())
}

/// The answer of `/healthz` for a client that trusts only this certificate.
async fn health(http: &Http, trusted: &CertificateDer<'static>) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(http.address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

#[tokio::test]
async fn changed_certificates_are_reloaded_and_invalid_ones_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let (files, first) = renew(dir.path());
    let http = Http::start(|settings| settings.http.tls = files.clone()).await;
    assert!(health(&http, &first).await.unwrap().ends_with("ok\n"));
    std::fs::write(&files.cert, "no certificate").unwrap();
    assert!(health(&http, &first).await.unwrap().ends_with("ok\n"));
    let (_, second) = renew(dir.path());
    assert!(health(&http, &second).await.unwrap().ends_with("ok\n"));
    assert!(health(&http, &first).await.is_err());
}

#[tokio::test]
async fn with_tls_other_machines_can_connect_and_an_invalid_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (files, _) = renew(dir.path());
    let files = TlsFiles {
        nodes: dir.path().join("nodes.pem").to_str().unwrap().to_owned(),
        ..files
    };
    std::fs::copy(&files.cert, &files.nodes).unwrap();
    let config = HttpConfig {
        listen: "0.0.0.0:0".to_owned(),
        tls: files.clone(),
        ..HttpConfig::default()
    };
    let bound = bind(&config, true).await.unwrap().unwrap();
    assert!(bound.url().starts_with("https://0.0.0.0:"));
    for file in [&files.nodes, &files.key] {
        std::fs::write(file, "no certificate and no key").unwrap();
        let refused = bind(&config, true).await.unwrap_err();
        assert!(
            matches!(&refused, HttpError::Tls { path, .. } if path == file),
            "{refused}"
        );
    }
}
