//! The sessions' network gate, and the handling of one connection.

use crate::head::{Kind, Wanted, read};
use crate::pass::{answer, both_ways};
use crate::rules::{Rules, address};
use agentd_sandbox::Gate;
use agentd_web::{Resolver, not_public};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// The maximum number of concurrent connections of one session; more wait.
const CONNECTIONS: usize = 64;
/// The deadline for receiving a head.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// The deadline for looking up a name and connecting.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);
/// The maximum number of addresses to try per name.
const ADDRESSES: usize = 8;

/// Judges the sessions' network requests, and connects to listed hosts. Clones share the rules.
#[derive(Debug, Clone)]
pub struct Proxy {
    rules: Arc<Rules>,
    resolver: Arc<dyn Resolver>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("{0}")]
    Unreadable(&'static str),
    #[error("{host}:{port} is not among the hosts of sandbox.network; only the operator can add it")]
    NotListed { host: String, port: u16 },
    #[error(
        "{host} resolves to {address}, and {why}; this address is not among the hosts of sandbox.network"
    )]
    NotPublic {
        host: String,
        address: IpAddr,
        why: &'static str,
    },
    #[error("cannot reach {host}:{port}: {why}")]
    Unreachable { host: String, port: u16, why: String },
}

impl Refusal {
    const fn status(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "400 Bad Request",
            Self::NotListed { .. } | Self::NotPublic { .. } => "403 Forbidden",
            Self::Unreachable { .. } => "502 Bad Gateway",
        }
    }
}

/// A session's proxy: dropping it ends the proxy with all its connections.
struct Open(AbortHandle);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Gate for Proxy {
    fn open(&self, socket: UnixListener) -> Box<dyn Send + Sync> {
        let session = Self {
            rules: Arc::clone(&self.rules),
            resolver: self.resolver.apart(),
        };
        let task = tokio::spawn(serve(session, socket));
        Box::new(Open(task.abort_handle()))
    }
}

async fn serve(proxy: Proxy, socket: UnixListener) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = match socket.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the proxy of a session stopped");
                return;
            }
        };
        while connections.try_join_next().is_some() {}
        let proxy = proxy.clone();
        connections.spawn(async move {
            let _place = place;
            // Both ends notice a broken connection.
            let _ = proxy.one(stream).await;
        });
    }
}

impl Proxy {
    /// Creates a proxy to the hosts of these rules.
    #[must_use]
    pub fn new(rules: Rules, resolver: Arc<dyn Resolver>) -> Self {
        Self {
            rules: Arc::new(rules),
            resolver,
        }
    }

    async fn one(&self, mut inside: UnixStream) -> std::io::Result<()> {
        let head = timeout(HEAD_WITHIN, head(&mut inside)).await;
        let (wanted, rest) = match head {
            Err(_) | Ok(Err(None)) => return Ok(()),
            Ok(Err(Some(refusal))) => return refuse(&mut inside, &refusal).await,
            Ok(Ok(read)) => read,
        };
        let outside = match self.connect(&wanted).await {
            Ok(outside) => outside,
            Err(refusal) => return refuse(&mut inside, &refusal).await,
        };
        match wanted.kind {
            Kind::Tunnel => {
                inside
                    .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    .await?;
                both_ways(inside, outside, &rest).await
            }
            Kind::Request { head, body } => answer(inside, outside, &head, &rest, body).await,
        }
    }

    /// Connects to an address after judging it.
    async fn connect(&self, wanted: &Wanted) -> Result<TcpStream, Refusal> {
        let (host, port) = (wanted.host.clone(), wanted.port);
        if !self.rules.names(&host, port) {
            tracing::info!(%host, port, "refused a host that is not in sandbox.network");
            return Err(Refusal::NotListed { host, port });
        }
        let unreachable = |why: String| Refusal::Unreachable {
            host: wanted.host.clone(),
            port,
            why,
        };
        let late = || unreachable(format!("no answer within {} s", CONNECT_WITHIN.as_secs()));
        timeout(CONNECT_WITHIN, async {
            let found = match address(&host) {
                Some(address) => vec![address],
                None => self
                    .resolver
                    .look_up(&host)
                    .await
                    .map_err(|error| unreachable(error.to_string()))?,
            };
            let mut last = unreachable("its name resolves to no address".to_owned());
            for address in found.into_iter().take(ADDRESSES) {
                if let Some(why) = not_public(address).filter(|_| !self.rules.opens(address, port)) {
                    tracing::info!(%host, %address, "refused a listed name that resolves to an internal address");
                    return Err(Refusal::NotPublic {
                        host: host.clone(),
                        address,
                        why,
                    });
                }
                match TcpStream::connect(SocketAddr::new(address, port)).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = unreachable(error.to_string()),
                }
            }
            Err(last)
        })
        .await
        .unwrap_or_else(|_| Err(late()))
    }
}

/// Reads the head of a request, and the bytes after it. The error has no reason if the client is gone.
async fn head(inside: &mut UnixStream) -> Result<(Wanted, Vec<u8>), Option<Refusal>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 4_096];
    loop {
        let count = inside.read(&mut chunk).await.map_err(|_| None)?;
        if count == 0 {
            return Err(None);
        }
        bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
        if let Some((wanted, length)) = read(&bytes).map_err(|why| Some(Refusal::Unreadable(why)))? {
            return Ok((wanted, bytes.split_off(length.min(bytes.len()))));
        }
    }
}

async fn refuse(inside: &mut UnixStream, refusal: &Refusal) -> std::io::Result<()> {
    let text = format!("agentd: {refusal}\n");
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        refusal.status(),
        text.len()
    );
    inside.write_all(head.as_bytes()).await?;
    inside.write_all(text.as_bytes()).await?;
    inside.shutdown().await
}
