//! Tests the proxy with servers and clients on this machine.

use crate::{Proxy, Rules};
use agentd_sandbox::Gate as _;
use agentd_settings::Reachable;
use agentd_web::{Looking, Resolver};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

/// Every name resolves to this machine.
#[derive(Debug)]
struct Here;

impl Resolver for Here {
    fn look_up<'a>(&'a self, _: &'a str) -> Looking<'a> {
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }

    fn apart(&self) -> Arc<dyn Resolver> {
        Arc::new(Self)
    }
}

struct World {
    _dir: TempDir,
    socket: PathBuf,
    port: u16,
    heard: mpsc::UnboundedReceiver<String>,
    gate: Option<Box<dyn Send + Sync>>,
}

impl World {
    /// Starts a server and a proxy; `PORT` in `listed` stands for the server's port.
    async fn new(listed: &[&str]) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let (tell, heard) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = server.accept().await {
                let tell = tell.clone();
                tokio::spawn(async move {
                    let mut all = Vec::new();
                    let mut chunk = [0; 1024];
                    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
                        all.extend_from_slice(&chunk[..count]);
                        let text = String::from_utf8_lossy(&all).into_owned();
                        let asked = text.contains("\r\n\r\n");
                        let _ = tell.send(text);
                        if asked {
                            let _ = stream
                                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
                                .await;
                            return;
                        }
                    }
                });
            }
        });
        let rules = listed
            .iter()
            .map(|text| Reachable::parse(&text.replace("PORT", &port.to_string())).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let gate = Proxy::new(Rules::new(rules.collect()), Arc::new(Here)).open(listener);
        Self {
            _dir: dir,
            socket,
            port,
            heard,
            gate: Some(gate),
        }
    }

    /// Sends a text (`PORT` stands for the server's port) and reads to the end.
    async fn says(&self, text: &str) -> String {
        let mut stream = UnixStream::connect(&self.socket).await.unwrap();
        let text = text.replace("PORT", &self.port.to_string());
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer))
            .await
            .unwrap()
            .unwrap();
        answer
    }
}

#[tokio::test]
async fn a_listed_address_is_reached_plainly_and_through_a_tunnel() {
    let mut world = World::new(&["127.0.0.1:PORT"]).await;
    let answer = world
        .says("GET http://127.0.0.1:PORT/x HTTP/1.1\r\nProxy-Authorization: s\r\n\r\n")
        .await;
    assert!(answer.ends_with("\r\n\r\nhi"), "{answer}");
    let heard = world.heard.recv().await.unwrap();
    assert!(
        heard.starts_with("GET /x HTTP/1.1\r\n") && !heard.contains("Authorization"),
        "{heard}"
    );
    let tunnel = "CONNECT 127.0.0.1:PORT HTTP/1.1\r\n\r\nGET /y HTTP/1.1\r\n\r\n";
    let answer = world.says(tunnel).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK"),
        "{answer}"
    );
    assert!(world.heard.recv().await.unwrap().starts_with("GET /y"));
}

#[tokio::test]
async fn a_listed_name_is_reached_where_its_address_is_listed_too() {
    let world = World::new(&["wiki.corp:PORT", "127.0.0.1:PORT"]).await;
    let answer = world.says("GET http://wiki.corp:PORT/ HTTP/1.1\r\n\r\n").await;
    assert!(answer.ends_with("hi"), "{answer}");
}

#[tokio::test]
async fn redteam_36_a_name_that_stands_for_an_inner_address_is_refused() {
    let mut world = World::new(&["wiki.corp:PORT"]).await;
    for text in [
        "GET http://wiki.corp:PORT/ HTTP/1.1\r\n\r\n",
        "CONNECT wiki.corp:PORT HTTP/1.1\r\n\r\n",
    ] {
        let answer = world.says(text).await;
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains("127.0.0.1"),
            "{answer}"
        );
    }
    assert!(world.heard.try_recv().is_err());
}

#[tokio::test]
async fn redteam_36_other_hosts_other_ports_and_other_spellings_are_refused() {
    let mut world = World::new(&["127.0.0.1:1", "good.example"]).await;
    for (text, status) in [
        ("CONNECT 127.0.0.1:PORT HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT evil.example:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT good.example.evil:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT good.example:22 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT 0x7f.1:1 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT good.example@evil:443 HTTP/1.1\r\n\r\n", "400"),
        (
            "GET http://good.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            "400",
        ),
        ("GET / HTTP/1.1\r\nHost: good.example\r\n\r\n", "400"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let answer = world.says(text).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{text}: {answer}"
        );
    }
    assert!(world.heard.try_recv().is_err());
}

#[tokio::test]
async fn redteam_36_a_second_request_behind_the_first_is_not_passed_on() {
    let mut world = World::new(&["127.0.0.1:PORT"]).await;
    let both = "GET http://127.0.0.1:PORT/a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let answer = world.says(both).await;
    assert!(answer.ends_with("hi"), "{answer}");
    let mut heard = world.heard.recv().await.unwrap();
    while let Ok(more) = world.heard.try_recv() {
        heard.push_str(&more);
    }
    assert!(!heard.contains("evil"), "{heard}");
}

#[tokio::test]
async fn i5_the_end_of_the_session_ends_its_connections() {
    let mut world = World::new(&["127.0.0.1:PORT"]).await;
    let mut stream = UnixStream::connect(&world.socket).await.unwrap();
    let text = format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", world.port);
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut said = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut said))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&said, b"HTTP/1.1 200");
    world.gate = None;
    let mut rest = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut rest))
        .await
        .unwrap()
        .unwrap();
    assert!(world.gate.is_none());
}
