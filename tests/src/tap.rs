//! A wire-tap: forwards connections to a server and keeps what the clients sent, byte for byte.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// A running tap. It stops, with all its connections, when dropped.
#[derive(Debug)]
pub struct Tap {
    url: String,
    heard: Arc<Mutex<Vec<u8>>>,
    accepting: JoinHandle<()>,
}

impl Tap {
    /// A tap before the server at `url`.
    pub async fn before(url: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a port of loopback");
        let address = listener.local_addr().expect("a bound socket has an address");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (target, kept) = (url.trim_start_matches("http://").to_owned(), Arc::clone(&heard));
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (target, kept) = (target.clone(), Arc::clone(&kept));
                connections.spawn(async move {
                    if let Ok(server) = TcpStream::connect(target).await {
                        forward(client, server, &kept).await;
                    }
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            url: format!("http://{address}"),
            heard,
            accepting,
        }
    }

    /// Its own address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Everything that clients have sent so far; connections at the same time are mixed.
    #[must_use]
    pub fn heard(&self) -> String {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&heard).into_owned()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn forward(client: TcpStream, server: TcpStream, kept: &Mutex<Vec<u8>>) {
    // Small frames must not wait for acknowledgements.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((mut from, mut back), (mut answers, mut to)) = (client.into_split(), server.into_split());
    let asking = async {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(n @ 1..) = from.read(&mut buffer).await {
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend_from_slice(&buffer[..n]);
            if to.write_all(&buffer[..n]).await.is_err() {
                break;
            }
        }
        let _ = to.shutdown().await;
    };
    let answering = async {
        let _ = tokio::io::copy(&mut answers, &mut back).await;
        let _ = back.shutdown().await;
    };
    tokio::join!(asking, answering);
}
