//! A server on a free port, and a client that writes requests by hand, so that it can misbehave.

use crate::harness::Harness;
use agentd_control::Connections;
use agentd_http::{Server, Wire, bind};
use agentd_protocol::Principal;
use agentd_settings::Settings;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than any operation takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Control(Connections);

#[async_trait]
impl Wire for Control {
    async fn serve(&self, stream: DuplexStream, who: Principal, stop: watch::Receiver<bool>) {
        self.0.serve_remote(stream, who, stop).await;
    }
}

pub(crate) struct Http {
    pub(crate) h: Harness,
    pub(crate) address: SocketAddr,
    /// A token that may do everything.
    pub(crate) ana: String,
    pub(crate) shutdown: watch::Sender<bool>,
    pub(crate) task: JoinHandle<()>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a problem.
    pub(crate) fn code(&self) -> String {
        assert!(
            self.head.contains("content-type: application/problem+json"),
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        problem["code"].as_str().unwrap().to_owned()
    }
}

impl Http {
    pub(crate) async fn start(change: impl FnOnce(&mut Settings)) -> Self {
        let h = Harness::with(|settings| {
            settings.http.listen = "127.0.0.1:0".to_owned();
            change(settings);
        })
        .await;
        let bound = bind(&h.api.loaded().settings.http, true).await.unwrap().unwrap();
        let address = bound.address;
        let (shutdown, stop) = watch::channel(false);
        let control = Control(Connections::new(Arc::clone(&h.api)));
        let server = Server::new(bound, Arc::clone(&h.api), Arc::new(control), stop);
        let ana = token(&h, "ana", &["read", "steer", "approve", "import", "admin"]).await;
        Self {
            h,
            address,
            ana,
            shutdown,
            task: tokio::spawn(server.serve()),
        }
    }

    /// A connection on which a token was shown, and its answer read.
    pub(crate) async fn known(&self) -> TcpStream {
        let head = format!(
            "GET /v1/rules HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
            self.ana
        );
        let mut stream = self.send(head.as_bytes()).await;
        let mut read = Vec::new();
        while !read.ends_with(b"}") {
            assert_ne!(
                timeout(LONG, stream.read_buf(&mut read)).await.unwrap().unwrap(),
                0
            );
        }
        stream
    }

    /// Sends bytes; returns the stream.
    pub(crate) async fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }

    /// A request as ana, and its answer.
    pub(crate) async fn ask(&self, verb: &str, path: &str, headers: &str, body: &str) -> Answer {
        let headers = format!("Authorization: Bearer {}\r\n{headers}", self.ana);
        self.raw(verb, path, &headers, body).await
    }

    /// A request with exactly these headers in addition to those that HTTP needs.
    pub(crate) async fn raw(&self, verb: &str, path: &str, headers: &str, body: &str) -> Answer {
        let length = body.len();
        let host = if headers.contains("Host:") {
            ""
        } else {
            "Host: localhost\r\n"
        };
        let request = format!(
            "{verb} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        answer(&mut self.send(request.as_bytes()).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(
            "POST",
            path,
            "Content-Type: application/json\r\n",
            &body.to_string(),
        )
        .await
    }
}

/// A new token.
pub(crate) async fn token(h: &Harness, name: &str, scopes: &[&str]) -> String {
    let params = json!({"name": name, "scopes": scopes, "dirs": ["/"], "mode": "yolo"});
    let created = h.call("token.create", params).await.unwrap();
    created["token"].as_str().unwrap().to_owned()
}

/// Reads a whole response.
pub(crate) async fn answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    timeout(LONG, stream.read_to_end(&mut bytes))
        .await
        .unwrap()
        .unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or(0),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}
