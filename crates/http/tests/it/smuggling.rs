//! Requests that a proxy and agentd could read differently. None is carried out, and nothing behind them either.

use crate::server::Http;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

const LONG: Duration = crate::server::LONG;

/// Sends bytes and returns all that comes back until the server closes.
async fn raw(http: &Http, text: &str) -> String {
    let mut stream = http.send(text.as_bytes()).await;
    let mut answer = Vec::new();
    // The server may reset the connection if bytes were left unread.
    let _ = timeout(LONG, stream.read_to_end(&mut answer))
        .await
        .expect("it ends");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The statuses of the answers.
fn statuses(answers: &str) -> Vec<&str> {
    answers
        .split("HTTP/1.1 ")
        .skip(1)
        .filter_map(|answer| answer.get(..3))
        .collect()
}

#[tokio::test]
async fn redteam_49_i7_no_request_is_hidden_in_another() {
    let http = Http::start(|_| {}).await;
    let hidden = format!(
        "GET /v1/rules HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
        http.ana
    );
    let plain = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n{hidden}");
    assert_eq!(
        statuses(&raw(&http, &plain).await),
        ["200", "200"],
        "positive control"
    );
    for fields in [
        "X: y\nZ: a",
        "Host: localhost",
        "X : y",
        "X: y\r\n z",
        "Content-Length: 0\r\nContent-Length: 0",
        "Content-Length: 0\nTransfer-Encoding: chunked",
        "Content-Length: 0\r\nTransfer-Encoding: chunked",
        "Content-Length: +0",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: \u{b}chunked",
    ] {
        let first = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n\r\n{hidden}");
        assert_eq!(statuses(&raw(&http, &first).await), ["400"], "{fields:?}");
    }
    let post = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        http.ana
    );
    for chunks in [
        "2;a\n{}\r\n0\r\n\r\n",
        "2;a=b\r\n{}\r\n0\r\n\r\n",
        "2\n{}\n0\n\n",
        "2\r\n{}zz0\r\n\r\n",
        "0\r\nX: y\r\n\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
    ] {
        let answers = raw(&http, &format!("{post}{chunks}{hidden}")).await;
        assert_eq!(statuses(&answers), ["400"], "{chunks:?}");
    }
}

#[tokio::test]
async fn redteam_49_i7_a_target_with_another_host_is_refused() {
    let http = Http::start(|_| {}).await;
    let ask = async |target: &str, host: &str| {
        let text = format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
            http.ana
        );
        raw(&http, &text).await
    };
    assert_eq!(
        statuses(&ask("http://localhost/v1/rules", "localhost").await),
        ["200"]
    );
    assert_eq!(
        statuses(&ask("http://localhost/v1/rules", "127.0.0.1").await),
        ["400"]
    );
    assert_eq!(
        statuses(&ask("http://evil.example/v1/rules", "localhost").await),
        ["400"]
    );
    assert_eq!(
        statuses(&ask("http://evil.example/v1/rules", "evil.example").await),
        ["421"]
    );
}

#[tokio::test]
async fn redteam_49_i7_frames_before_the_upgrade_are_refused() {
    let http = Http::start(|_| {}).await;
    let upgrade = format!(
        "GET /v1/wire HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
         Authorization: Bearer {}\r\n\r\n",
        http.ana
    );
    assert_eq!(statuses(&raw(&http, &format!("{upgrade}GET")).await), ["400"]);
    let mut stream = http.send(upgrade.as_bytes()).await;
    let mut begin = [0; 12];
    timeout(LONG, stream.read_exact(&mut begin))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&begin, b"HTTP/1.1 101", "positive control");
    stream.shutdown().await.unwrap();
}
