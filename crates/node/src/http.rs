//! The HTTP server of a node.

use crate::error::NodeError;
use crate::service::{Phase, Service};
use agentd_api::Api;
use agentd_control::Connections;
use agentd_http::{Bound, Server, Wire, bind};
use agentd_protocol::Principal;
use agentd_settings::{HttpConfig, Loaded, Origin};
use async_trait::async_trait;
use std::sync::Arc;
use tokio::io::DuplexStream;
use tokio::sync::watch;

/// Opens the address of the configuration; `None` if HTTP is off. Only an address that an operator set is fixed.
pub(crate) async fn open(loaded: &Loaded) -> Result<Option<Bound>, NodeError> {
    let fixed = loaded.origins.get("http.listen").is_some_and(Origin::is_operator);
    let bound = bind(&loaded.settings.http, fixed).await?;
    if let Some(bound) = &bound {
        tracing::info!(url = bound.url(), "serving HTTP");
    }
    Ok(bound)
}

/// The URL that clients use; `off` without HTTP.
pub(crate) fn url(bound: Option<&Bound>) -> String {
    bound.map_or_else(|| "off".to_owned(), Bound::url)
}

/// The HTTP server. Another one after it opens the same address again.
pub(crate) fn server(bound: Bound, api: Arc<Api>, connections: Arc<Connections>) -> Service {
    let config = HttpConfig {
        listen: bound.address.to_string(),
        ..api.loaded().settings.http.clone()
    };
    let state = (Some(bound), config, api, Remote(connections));
    Service::new(
        "the HTTP server",
        Phase::Front,
        state,
        |(bound, config, api, remote), stopped| {
            Box::pin(async move {
                let opened = match bound.take() {
                    Some(opened) => Ok(Some(opened)),
                    None => bind(config, true).await,
                };
                match opened {
                    Ok(Some(bound)) => {
                        let wire = Arc::new(remote.clone());
                        Server::new(bound, Arc::clone(api), wire, stopped).serve().await;
                    }
                    Ok(None) => {}
                    Err(error) => tracing::error!(%error, "could not open the HTTP address again"),
                }
            })
        },
    )
}

/// The URL, and why it is not the usual one.
pub(crate) fn note(bound: Option<&Bound>) -> String {
    let moved = bound.is_some_and(|bound| bound.moved);
    let why = if moved {
        format!(" (another program has {})", HttpConfig::default().listen)
    } else {
        String::new()
    };
    format!("{}{why}", url(bound))
}

/// The control protocol for remote clients.
#[derive(Debug, Clone)]
struct Remote(Arc<Connections>);

#[async_trait]
impl Wire for Remote {
    async fn serve(&self, stream: DuplexStream, who: Principal, shutdown: watch::Receiver<bool>) {
        self.0.serve_remote(stream, who, shutdown).await;
    }
}
