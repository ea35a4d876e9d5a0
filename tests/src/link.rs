//! A TCP connection to a server that can be slow, silent, half closed or cut.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// What happens to the bytes of all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// They arrive.
    Whole,
    /// They arrive this much later.
    Slow(Duration),
    /// They wait, in both directions, until the line is whole again.
    Silent,
    /// The answers of connections that are open now end, while the server still hears them; new ones are whole.
    HalfClosed,
    /// All connections end, and new ones end at once.
    Cut,
}

/// The server behind a link.
#[derive(Debug, Clone)]
pub enum Server {
    /// A Unix socket.
    Socket(PathBuf),
    /// `host:port`.
    Tcp(String),
}

/// The link; it ends when dropped.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    line: watch::Sender<Line>,
    server: Arc<Mutex<Option<Server>>>,
    used: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
        self.line.send_replace(Line::Cut);
    }
}

impl Link {
    /// A link to a server, or to one that [`Link::lead_to`] names later.
    pub async fn new(server: Option<Server>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        let (line, state) = watch::channel(Line::Whole);
        let server = Arc::new(Mutex::new(server));
        let used = Arc::new(AtomicBool::new(false));
        let accepting = accept(listener, Arc::clone(&server), Arc::clone(&used), state);
        let task = tokio::spawn(accepting);
        Self {
            address,
            line,
            server,
            used,
            task,
        }
    }

    /// Where clients connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// New connections lead to this server.
    pub fn lead_to(&self, server: Server) {
        *self.server.lock().expect("no holder of the lock panics") = Some(server);
    }

    /// Whether a client has connected.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Changes what happens to bytes.
    pub fn set(&self, line: Line) {
        self.line.send_replace(line);
    }
}

async fn accept(
    listener: TcpListener,
    server: Arc<Mutex<Option<Server>>>,
    used: Arc<AtomicBool>,
    line: watch::Receiver<Line>,
) {
    while let Ok((client, _)) = listener.accept().await {
        used.store(true, Ordering::Relaxed);
        let server = server.lock().expect("no holder of the lock panics").clone();
        let cut = *line.borrow() == Line::Cut;
        if cut {
            continue;
        }
        tokio::spawn(connect(client, server, line.clone()));
    }
}

async fn connect(client: TcpStream, server: Option<Server>, line: watch::Receiver<Line>) {
    match server {
        Some(Server::Socket(path)) => {
            if let Ok(server) = UnixStream::connect(path).await {
                join(client, tokio::io::split(server), line).await;
            }
        }
        Some(Server::Tcp(address)) => {
            if let Ok(server) = TcpStream::connect(address).await {
                join(client, tokio::io::split(server), line).await;
            }
        }
        None => {}
    }
}

async fn join<R, W>(client: TcpStream, (answers, requests): (R, W), line: watch::Receiver<Line>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (from_client, to_client) = client.into_split();
    let out = pump(from_client, requests, line.clone(), false);
    let back = pump(answers, to_client, line, true);
    tokio::join!(out, back);
}

/// Copies one direction until it ends.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut line: watch::Receiver<Line>,
    back: bool,
) {
    let mut bytes = vec![0; 16 * 1024];
    // A connection that begins on a half-closed line is whole.
    let begun = *line.borrow_and_update();
    let mut changed = false;
    loop {
        let now = *line.borrow();
        match now {
            Line::Cut => return,
            Line::HalfClosed if back && (changed || begun != now) => break,
            Line::Silent => {
                changed = true;
                if line.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Line::Whole | Line::Slow(_) | Line::HalfClosed => {}
        }
        let read = tokio::select! {
            read = from.read(&mut bytes) => read.unwrap_or(0),
            ended = line.changed() => {
                changed = true;
                if ended.is_err() {
                    return;
                }
                continue;
            }
        };
        if read == 0 {
            break;
        }
        let now = *line.borrow();
        if let Line::Slow(delay) = now {
            sleep(delay).await;
        }
        let cut = *line.borrow() == Line::Cut;
        if cut || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
    // The other direction goes on.
    let _ = to.shutdown().await;
}
