//! Clients that write or read as slowly as they can. Each loses its connection, and its place goes to another client.

use crate::server::{Http, LONG};
use agentd_settings::HttpConfig;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// The time between two bytes of a slow client: far below each limit.
const DRIP: Duration = Duration::from_millis(20);

/// A server with a single place and short limits.
async fn one_place() -> Http {
    Http::start(|settings| {
        settings.http = HttpConfig {
            connections: 1,
            header_ms: 1_000,
            body_ms: 1_000,
            stall_ms: 1_000,
            ..settings.http.clone()
        };
    })
    .await
}

/// Writes this byte again and again until the server ends the connection; returns what it answered.
async fn drip(stream: &mut TcpStream, byte: u8) -> String {
    let mut answer = Vec::new();
    let ending = async {
        loop {
            match timeout(DRIP, stream.read_buf(&mut answer)).await {
                Ok(Ok(0) | Err(_)) => return,
                Ok(Ok(_)) => {}
                // An error means that the connection has ended, as the next read says.
                Err(_) => drop(stream.write_all(&[byte]).await),
            }
        }
    };
    timeout(LONG, ending).await.expect("the server ends it");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn i6_a_client_that_sends_its_headers_byte_by_byte_is_disconnected() {
    let http = one_place().await;
    let mut slow = http.send(b"GET /v1/rules HTTP/1.1\r\nX-Slow: ").await;
    let answer = drip(&mut slow, b'x').await;
    assert!(answer.is_empty() || answer.contains(" 408 "), "{answer}");
    assert_eq!(http.get("/v1/rules").await.status, 200);
}

#[tokio::test]
async fn i6_a_client_that_sends_its_body_byte_by_byte_gets_an_error_and_is_disconnected() {
    let http = one_place().await;
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n",
        http.ana
    );
    let mut slow = http.send(head.as_bytes()).await;
    let answer = drip(&mut slow, b' ').await;
    assert!(
        answer.starts_with("HTTP/1.1 408 ") && answer.contains("body_late"),
        "{answer}"
    );
    assert_eq!(http.get("/v1/rules").await.status, 200);
}

#[tokio::test]
async fn i6_a_client_that_reads_nothing_is_disconnected() {
    let http = one_place().await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut slow = socket.connect(http.address).await.unwrap();
    // More answers than the system's buffers hold.
    let ask = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    slow.write_all(&ask).await.unwrap();
    assert_eq!(http.get("/v1/rules").await.status, 200);
}
