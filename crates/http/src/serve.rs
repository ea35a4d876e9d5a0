//! Accepts connections, up to their limit, until shutdown.

use crate::bind::Bound;
use crate::link::{Client, Link};
use crate::router::{App, router};
use crate::stall::Impatient;
use crate::strict::Strict;
use crate::tls::CertifiedNode;
use crate::wire::Wire;
use agentd_admission::{Budget, Seats, Shares};
use agentd_api::Api;
use agentd_settings::HttpConfig;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// How long open connections may take to end.
const FAREWELL: Duration = Duration::from_secs(6);
/// The pause after the system could not accept a connection (too many open files).
const BREATH: Duration = Duration::from_millis(100);
/// The most bytes that the system keeps unsent for a client. With its own limit of megabytes, a client that does not read
/// would lag only after that.
const UNSENT: u32 = 128 << 10;
/// The most bytes of a request's line and headers.
const HEADERS: usize = 16 << 10;

/// An HTTP server.
#[derive(Debug)]
pub struct Server {
    bound: Bound,
    router: Router,
    config: HttpConfig,
    /// The memory for requests, which all transports share.
    memory: Arc<Budget>,
    shutdown: watch::Receiver<bool>,
}

impl Server {
    /// Creates a server over the api. It ends when `shutdown` turns true or its sender is gone.
    #[must_use]
    pub fn new(bound: Bound, api: Arc<Api>, wire: Arc<dyn Wire>, shutdown: watch::Receiver<bool>) -> Self {
        let config = api.loaded().settings.http.clone();
        let memory = Arc::clone(api.memory());
        let app = Arc::new(App::new(api, wire, bound.address.ip(), shutdown.clone()));
        Self {
            bound,
            router: router(app, &config),
            config,
            memory,
            shutdown,
        }
    }

    /// Serves until shutdown, then lets open requests end.
    pub async fn serve(mut self) {
        let seats = Seats::new(shares(&self.config));
        let mut open = JoinSet::new();
        loop {
            let (stream, peer) = tokio::select! {
                () = stopping(&mut self.shutdown) => break,
                accepted = self.bound.listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        tracing::warn!(%error, "could not accept an HTTP connection");
                        sleep(BREATH).await;
                        continue;
                    }
                },
            };
            while open.try_join_next().is_some() {}
            let seat = tokio::select! {
                () = stopping(&mut self.shutdown) => break,
                seat = seats.wait(Client::At(peer.ip())) => Arc::new(seat),
            };
            let (router, config, shutdown) =
                (self.router.clone(), self.config.clone(), self.shutdown.clone());
            let tls = match &mut self.bound.tls {
                Some(tls) => Some(tls.acceptor().await),
                None => None,
            };
            let local = stream.local_addr().ok().map(|local| local.ip());
            let account = Arc::new(self.memory.account());
            open.spawn(async move {
                let link = Link {
                    seat: Arc::clone(&seat),
                    account,
                    local,
                    upgrade: Arc::default(),
                };
                tokio::select! {
                    () = secured(stream, tls, (router, link), &config, shutdown) => {}
                    () = seat.wanted() => tracing::info!(%peer, "closing an HTTP connection that did the least: another client needs its place"),
                }
            });
        }
        drop(self.bound);
        let all = async { while open.join_next().await.is_some() {} };
        if timeout(FAREWELL, all).await.is_err() {
            tracing::debug!(
                left = open.len(),
                "closing HTTP connections that did not end in time"
            );
        }
    }
}

/// How the connections are divided.
fn shares(config: &HttpConfig) -> Shares {
    let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
    let most = count(config.connections).max(1);
    let known = count(config.connections_known).min(most / 2);
    Shares {
        most,
        reserved: 0,
        strangers: most - known,
        grace: Duration::from_millis(config.grace_ms),
    }
}

/// Serves one connection, over TLS if there is an acceptor. The handshake has the time limit of the headers.
async fn secured(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    (router, link): (Router, Link),
    config: &HttpConfig,
    shutdown: watch::Receiver<bool>,
) {
    // Deltas are small and must not wait for each other.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
    let stream = Impatient::new(stream, Duration::from_millis(config.stall_ms));
    let Some(tls) = tls else {
        return connection(stream, (router, link, None), config, shutdown).await;
    };
    let limit = Duration::from_millis(config.header_ms);
    match timeout(limit, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let certified = stream.get_ref().1.peer_certificates().map(|_| CertifiedNode);
            connection(stream, (router, link, certified), config, shutdown).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake did not end in time"),
    }
}

/// Serves one connection until it ends, breaks a limit, or the daemon stops.
async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (router, link, certified): (Router, Link, Option<CertifiedNode>),
    config: &HttpConfig,
    mut shutdown: watch::Receiver<bool>,
) {
    let stream = Strict::new(stream, Arc::clone(&link.upgrade));
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(link.clone());
        if let Some(certified) = certified {
            request.extensions_mut().insert(certified);
        }
        router.call(request)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(config.header_ms))
        .max_buf_size(HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        () = stopping(&mut shutdown) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection ended with an error");
    }
}

/// Waits until the daemon stops; a dropped sender means the same.
pub(crate) async fn stopping(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|stop| *stop).await;
}
