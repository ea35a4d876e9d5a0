//! The server: where it is, and how to connect to it.

use crate::error::words;
use agentd_store::StoreError;
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a statement may take on the server.
const STATEMENT_MS: u64 = 30_000;

/// The tables are in a schema of their own.
pub(crate) const SCHEMA: &str = "agentd";

type Tls = <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream;

/// A parsed URL with its password. Displays as `HOST/DATABASE`.
#[derive(Clone)]
pub(crate) struct Server {
    config: Config,
    tls: MakeRustlsConnect,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        write!(
            f,
            "{}/{}",
            hosts.join(","),
            self.config.get_dbname().unwrap_or_default()
        )
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

impl Server {
    /// Parses a URL. The password of the URL is used unless there is another one.
    pub(crate) fn parse(url: &str, password: Option<&str>) -> Result<Self, StoreError> {
        let mut config: Config = url
            .parse()
            .map_err(|error| StoreError::BadServer { why: words(&error) })?;
        if let Some(password) = password {
            config.password(password);
        }
        if let Some(password) = config.get_password() {
            agentd_text::register_secret(&String::from_utf8_lossy(password));
        }
        let local = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
        };
        // The library's default falls back to plain text, which is wrong for a server elsewhere and useless for a local one.
        if config.get_ssl_mode() == SslMode::Prefer {
            let mode = if config.get_hosts().iter().all(local) {
                SslMode::Disable
            } else {
                SslMode::Require
            };
            config.ssl_mode(mode);
        }
        config
            .application_name("agentd")
            .connect_timeout(CONNECT)
            .keepalives_idle(Duration::from_secs(5))
            .tcp_user_timeout(Duration::from_secs(20));
        Ok(Self {
            config,
            tls: MakeRustlsConnect::new(certificates()?),
        })
    }

    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn tls(&self) -> MakeRustlsConnect {
        self.tls.clone()
    }

    pub(crate) fn unreachable(&self, why: impl fmt::Display) -> StoreError {
        StoreError::Unreachable {
            server: self.to_string(),
            why: why.to_string(),
        }
    }

    /// Connects, and sets what every connection needs. The caller polls the connection.
    pub(crate) async fn dial(&self) -> Result<(Client, Connection<Socket, Tls>), StoreError> {
        let dialed = timeout(CONNECT, self.config.connect(self.tls())).await;
        dialed
            .map_err(|_| self.unreachable("no answer in 10 s"))?
            .map_err(|error| self.unreachable(words(&error)))
    }

    /// A connection that a task polls until the client is dropped.
    pub(crate) async fn connect(&self) -> Result<Client, StoreError> {
        let (client, connection) = self.dial().await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = words(&error), "a connection to the database ended");
            }
        });
        let set = timeout(CONNECT, client.batch_execute(&settings())).await;
        set.map_err(|_| self.unreachable("no answer in 10 s"))?
            .map_err(|error| self.unreachable(words(&error)))?;
        Ok(client)
    }
}

/// The settings of every connection. As statements, because poolers refuse them as startup parameters.
pub(crate) fn settings() -> String {
    format!(
        "SET search_path = {SCHEMA}; SET synchronous_commit = on; SET statement_timeout = {STATEMENT_MS};
         SET lock_timeout = 10000; SET idle_in_transaction_session_timeout = 5000; SET client_min_messages = warning;
         SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
    )
}

/// The root certificates of the system; `SSL_CERT_FILE` names others.
fn certificates() -> Result<ClientConfig, StoreError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| StoreError::BadServer {
        why: error.to_string(),
    })?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
