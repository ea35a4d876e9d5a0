//! Connects to servers: the SDK's transports, with limits.

use crate::cleaning::words;
use crate::error::McpError;
use crate::hearing::Hearing;
use crate::launch::{Child, Launch, Process};
use crate::pacing::{MAX_MESSAGE, Nonsense, Paced, Sober};
use crate::spec::{Command, ServerSpec, Transport};
use futures_util::FutureExt as _;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::RoleClient;
use rmcp::service::{ClientInitializeError, RunningService, serve_client};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a server that closed its output may take to exit, so that its exit status can be reported.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(3);

/// The means to connect to servers.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    pub(crate) launch: Arc<dyn Launch>,
    pub(crate) http: reqwest::Client,
}

/// An initialized server.
pub(crate) struct Reached {
    pub(crate) service: RunningService<RoleClient, Hearing>,
    pub(crate) process: Option<Box<dyn Process>>,
}

/// A client for servers over HTTP: no redirects (they would carry headers elsewhere), a short connection timeout.
///
/// # Errors
/// The TLS set-up of this machine is unusable.
pub fn http_client() -> Result<reqwest::Client, McpError> {
    // An error only means that another provider was installed first, which is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .redirect(Policy::none())
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
    };
    builder()
        .build()
        // A machine without root certificates can still talk to its local servers.
        .or_else(|_| builder().tls_certs_only(std::iter::empty()).build())
        .map_err(McpError::Http)
}

/// Starts a server, or connects to it, and initializes the protocol.
pub(crate) async fn reach(
    spec: &ServerSpec,
    workdir: &Path,
    ways: &Ways,
    hearing: Hearing,
) -> Result<Reached, McpError> {
    match &spec.transport {
        Transport::Stdio(command) => {
            let command = in_place(command, workdir);
            let child = ways.launch.launch(&spec.name, &command, workdir).await?;
            greet(spec, child, hearing).await
        }
        Transport::Http { url, headers } => {
            let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                .custom_headers(secret_headers(spec, headers)?)
                .max_sse_event_size(MAX_MESSAGE);
            let transport = StreamableHttpClientTransport::with_client(ways.http.clone(), config);
            let transport = Paced::new(transport, Nonsense::default());
            let service = serve_client(hearing, transport)
                .boxed()
                .await
                .map_err(|error| refused(spec, &error))?;
            Ok(Reached {
                service,
                process: None,
            })
        }
    }
}

async fn greet(spec: &ServerSpec, child: Child, hearing: Hearing) -> Result<Reached, McpError> {
    let nonsense = Nonsense::default();
    let stdout = Sober::new(child.stdout, nonsense.clone());
    let transport = AsyncRwTransport::new_client(stdout, child.stdin).with_max_line_length(MAX_MESSAGE);
    let transport = Paced::new(transport, nonsense);
    let mut process = child.process;
    let greeted = tokio::select! {
        biased;
        greeted = serve_client(hearing, transport).boxed() => greeted,
        why = process.ended() => {
            return Err(McpError::Initialize { server: spec.name.clone(), why });
        }
    };
    match greeted {
        Ok(service) => Ok(Reached {
            service,
            process: Some(process),
        }),
        // If the process is about to exit, its exit explains more than the closed pipe.
        Err(ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }) => {
            let why = match timeout(LAST_WORDS, process.ended()).await {
                Ok(why) => why,
                Err(_) => "it closed its output or sent no valid message".to_owned(),
            };
            Err(McpError::Initialize {
                server: spec.name.clone(),
                why,
            })
        }
        Err(error) => Err(refused(spec, &error)),
    }
}

fn refused(spec: &ServerSpec, error: &ClientInitializeError) -> McpError {
    let why = if error.is_authorization_required() {
        "it refused the credentials: check the headers in its configuration".to_owned()
    } else {
        words(&with_causes(error))
    };
    McpError::Initialize {
        server: spec.name.clone(),
        why,
    }
}

/// An error with those of its causes that add information.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

fn in_place(command: &Command, workdir: &Path) -> Command {
    let workdir = workdir.to_string_lossy();
    Command {
        argv: command
            .argv
            .iter()
            .map(|word| word.replace("{workdir}", &workdir))
            .collect(),
        ..command.clone()
    }
}

fn secret_headers(
    spec: &ServerSpec,
    headers: &BTreeMap<String, String>,
) -> Result<HashMap<HeaderName, HeaderValue>, McpError> {
    let read = |(name, value): (&String, &String)| {
        let wrong = || McpError::Spec {
            server: spec.name.clone(),
            problem: format!("cannot send the header {}", words(name)),
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    headers.iter().map(read).collect()
}
