//! A server that does everything wrong on purpose: raw TCP, so that nothing between a script and the wire is polite.

mod act;
mod speech;

pub use act::{Act, Acts, html, http, redirect, status_line, stream_head};
pub use speech::{Say, Speech};

use act::perform;
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The longest head of a request.
const MAX_HEAD: usize = 64 << 10;

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its number among the requests of this server, from 0.
    pub number: u64,
    /// When it was complete, since the start of the server.
    pub at_ms: u64,
    /// Request line and headers.
    pub head: String,
    /// The body.
    pub body: Bytes,
}

impl Asked {
    /// The path, with what follows it.
    #[must_use]
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

/// The requests that a server has seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Connections so far.
    pub connections: u64,
    /// Connections that are open now.
    pub open: u64,
    /// Requests so far.
    pub requests: u64,
    /// Bytes that the clients took.
    pub sent: u64,
}

/// Says what a request is answered with.
pub type Script = Arc<dyn Fn(&Asked) -> Acts + Send + Sync>;

/// A running server. It stops, with all its connections, when dropped.
#[derive(Debug)]
pub struct FaultServer {
    address: SocketAddr,
    seen: Arc<Seen>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
pub(crate) struct Seen {
    counted: watch::Sender<Counted>,
    requests: AtomicU64,
    started: Instant,
}

impl Seen {
    pub(crate) fn note(&self, change: impl FnOnce(&mut Counted)) {
        self.counted.send_modify(change);
    }
}

/// Counts a connection for as long as it lives.
struct Open(Arc<Seen>);

impl Open {
    fn new(seen: &Arc<Seen>) -> Self {
        seen.note(|counted| {
            counted.connections += 1;
            counted.open += 1;
        });
        Self(Arc::clone(seen))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.note(|counted| counted.open -= 1);
    }
}

impl FaultServer {
    /// A server that reads each request and then does what `script` says. A connection is closed after the last act.
    pub async fn start(script: impl Fn(&Asked) -> Acts + Send + Sync + 'static) -> Self {
        let script: Script = Arc::new(script);
        Self::listen(move |socket, seen| {
            let script = Arc::clone(&script);
            async move { serve(socket, &script, &seen).await }
        })
        .await
    }

    /// A server that performs `acts` on each connection without reading anything first.
    pub async fn deaf(acts: Acts) -> Self {
        Self::listen(move |mut socket, seen| {
            let acts = acts.clone();
            async move { perform(&mut socket, acts, &seen).await.map(drop) }
        })
        .await
    }

    async fn listen<F, T>(serve: F) -> Self
    where
        F: Fn(TcpStream, Arc<Seen>) -> T + Send + 'static,
        T: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a port of loopback");
        let address = listener.local_addr().expect("a bound socket has an address");
        let seen = Arc::new(Seen {
            counted: watch::channel(Counted::default()).0,
            requests: AtomicU64::new(0),
            started: Instant::now(),
        });
        let noted = Arc::clone(&seen);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let serving = serve(socket, Arc::clone(&noted));
                let open = Open::new(&noted);
                connections.spawn(async move {
                    // A client that goes away is what most of the tests are about.
                    let _ = serving.await;
                    drop(open);
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            seen,
            accepting,
        }
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests that it has seen so far.
    #[must_use]
    pub fn seen(&self) -> Counted {
        *self.seen.counted.borrow()
    }

    /// Waits until what it has seen satisfies `wanted`.
    pub async fn until(&self, what: &str, wanted: impl FnMut(&Counted) -> bool) -> Counted {
        let mut watcher = self.seen.counted.subscribe();
        let waiting = async { watcher.wait_for(wanted).await.map(|counted| *counted) };
        crate::follow::within(what, waiting)
            .await
            .expect("the sender lives as long as the server")
    }
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut socket: TcpStream, script: &Script, seen: &Arc<Seen>) -> io::Result<()> {
    // Each act must leave the machine as it is, not joined to the next one.
    socket.set_nodelay(true)?;
    let mut unread = Vec::new();
    while let Some((head, body)) = read_request(&mut socket, &mut unread).await? {
        let asked = Asked {
            number: seen.requests.fetch_add(1, Ordering::Relaxed),
            at_ms: u64::try_from(seen.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            head,
            body,
        };
        seen.note(|counted| counted.requests += 1);
        if !perform(&mut socket, script(&asked), seen).await? {
            break;
        }
    }
    Ok(())
}

/// Reads one request with a `content-length`; `None`: the client is gone.
async fn read_request(socket: &mut TcpStream, unread: &mut Vec<u8>) -> io::Result<Option<(String, Bytes)>> {
    loop {
        if let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(unread.get(..end).unwrap_or_default()).into_owned();
            let whole = end + 4 + content_length(&head);
            while unread.len() < whole {
                if socket.read_buf(unread).await? == 0 {
                    return Ok(None);
                }
            }
            let rest = unread.split_off(whole);
            let body = Bytes::from(std::mem::replace(unread, rest)).slice(end + 4..);
            return Ok(Some((head, body)));
        }
        if unread.len() > MAX_HEAD || socket.read_buf(unread).await? == 0 {
            return Ok(None);
        }
    }
}

fn content_length(head: &str) -> usize {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}
