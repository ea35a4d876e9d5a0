//! Many clients that take connections and send nothing useful. Those with a token are served at once.

use crate::server::{Http, LONG, answer};
use agentd_settings::HttpConfig;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const SIGN_IN: &str = "POST /v1/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

/// Limits so long that a test which waits for them fails.
async fn places(connections: u32, known: u32) -> Http {
    Http::start(|settings| {
        settings.http = HttpConfig {
            connections,
            connections_known: known,
            grace_ms: 0,
            header_ms: 600_000,
            body_ms: 600_000,
            sign_in_ms: 600_000,
            stall_ms: 600_000,
            ..settings.http.clone()
        };
    })
    .await
}

/// Waits until the server closes the connection.
async fn closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let ended = timeout(LONG, stream.read_to_end(&mut rest))
        .await
        .expect("it is closed");
    assert!(
        ended.is_ok() || ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset),
        "another error"
    );
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
}

#[tokio::test]
async fn redteam_50_i6_slow_requests_without_a_token_stop_no_one() {
    let http = places(8, 2).await;
    let head = |rest: &str| format!("{SIGN_IN}{rest}");
    for begun in [
        // Slow POST: a body that never ends.
        head("Content-Length: 4096\r\n\r\n{"),
        head("Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"),
        head("Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"),
        // Slowloris: a head that never ends.
        head("X-Slow: "),
        "GET / HTTP/1.1\r\n".to_owned(),
        // Nothing at all.
        String::new(),
        // A token that is none.
        "GET /v1/rules HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n".to_owned(),
        // Answers that are not read.
        "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(50),
    ] {
        let mut crowd = Vec::new();
        for _ in 0..40 {
            crowd.push(http.send(begun.as_bytes()).await);
        }
        assert_eq!(http.get("/v1/rules").await.status, 200, "{begun:?}");
    }
}

#[tokio::test]
async fn redteam_50_i6_a_stranger_replaces_a_stranger_and_no_one_with_a_token() {
    let http = places(4, 2).await;
    let mut known = [http.known().await, http.known().await];
    let (mut first, mut second) = (http.send(b"GET").await, http.send(b"GET").await);
    let _third = http.send(b"GET").await;
    // The order in which connections are accepted is that in which they were made.
    closed(&mut first).await;
    let _fourth = http.send(b"GET").await;
    closed(&mut second).await;
    for stream in &mut known {
        let again = format!(
            "GET /v1/rules HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
            http.ana
        );
        stream.write_all(again.as_bytes()).await.unwrap();
        assert_eq!(answer(stream).await.status, 200);
    }
}

#[tokio::test]
async fn redteam_50_i6_a_token_whose_bodies_do_not_end_stops_no_one() {
    let http = places(4, 1).await;
    let slow = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{",
        http.ana
    );
    let mut crowd = Vec::new();
    for _ in 0..40 {
        crowd.push(http.send(slow.as_bytes()).await);
    }
    assert_eq!(http.get("/v1/rules").await.status, 200);
}

#[tokio::test]
async fn redteam_50_i6_a_sign_in_has_a_deadline_of_its_own() {
    let http = Http::start(|settings| {
        settings.http.body_ms = 600_000;
        settings.http.sign_in_ms = 100;
    })
    .await;
    let mut slow = http
        .send(format!("{SIGN_IN}Content-Length: 9\r\n\r\n{{").as_bytes())
        .await;
    let late = answer(&mut slow).await;
    assert_eq!((late.status, late.code().as_str()), (408, "body_late"));
}

/// All places are busy with streams: a new client waits, as the attacks would make it wait without the guard, and is served
/// when a stream ends.
#[tokio::test]
async fn redteam_control_50_busy_connections_are_not_replaced() {
    let http = places(1, 0).await;
    let stream = format!(
        "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer {}\r\n\r\n",
        http.ana
    );
    let mut busy = http.send(stream.as_bytes()).await;
    let mut begin = [0; 15];
    timeout(LONG, busy.read_exact(&mut begin)).await.unwrap().unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    // On one thread, the server had all turns that it can use while it waits for something.
    let mut waiting = http
        .send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        waiting.try_read(&mut begin).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    drop(busy);
    assert_eq!(answer(&mut waiting).await.status, 200);
}
