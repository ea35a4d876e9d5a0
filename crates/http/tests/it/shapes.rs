//! Requests that no client should send: malformed, ambiguous, too large, cut off. Each gets an answer that says so or a
//! closed connection, never a 5xx, and the server goes on.

use crate::server::{Http, LONG};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Sends bytes, and closes its half of the connection or only waits; returns the statuses of the answers.
async fn statuses(http: &Http, bytes: &[u8], close: bool) -> Vec<u16> {
    let mut stream = TcpStream::connect(http.address).await.unwrap();
    // The server may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    if close {
        let _ = stream.shutdown().await;
    }
    let mut answers = Vec::new();
    let _ = timeout(LONG, stream.read_to_end(&mut answers))
        .await
        .expect("the connection ends");
    let answers = String::from_utf8_lossy(&answers);
    let starts = answers.split("HTTP/1.").skip(1);
    starts
        .map(|answer| answer.get(2..5).unwrap_or_default().parse().unwrap_or(0))
        .collect()
}

/// A request with a token, with these lines after its first one.
fn request(http: &Http, first: &str, lines: &[&[u8]], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "{first}\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n",
        http.ana
    )
    .into_bytes();
    for line in lines {
        bytes.extend_from_slice(line);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

const CREATE: &str = "POST /v1/sessions HTTP/1.1";
/// The part that a server mistakes for a second request if it reads the length wrongly.
const SMUGGLED: &[u8] = b"0\r\n\r\nDELETE /v1/sessions/x HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A name, the first line, further header lines, the body.
type Shape = (
    &'static str,
    &'static str,
    &'static [&'static [u8]],
    &'static [u8],
);

/// Requests with a token.
const SHAPES: [Shape; 29] = [
    (
        "two lengths",
        CREATE,
        &[b"Content-Length: 1", b"Content-Length: 2"],
        b"{}",
    ),
    ("a list of lengths", CREATE, &[b"Content-Length: 2, 3"], b"{}"),
    ("a signed length", CREATE, &[b"Content-Length: +2"], b"{}"),
    ("a negative length", CREATE, &[b"Content-Length: -2"], b"{}"),
    (
        "a length beyond all numbers",
        CREATE,
        &[b"Content-Length: 99999999999999999999999"],
        b"{}",
    ),
    (
        "a length and chunks",
        CREATE,
        &[b"Content-Length: 5", b"Transfer-Encoding: chunked"],
        SMUGGLED,
    ),
    (
        "chunks before another coding",
        CREATE,
        &[b"Transfer-Encoding: chunked, gzip"],
        SMUGGLED,
    ),
    (
        "an unknown coding",
        CREATE,
        &[b"Transfer-Encoding: xchunked"],
        SMUGGLED,
    ),
    (
        "a chunk beyond all numbers",
        CREATE,
        &[b"Transfer-Encoding: chunked"],
        b"fffffffffffffffff\r\n{}",
    ),
    (
        "a chunk without a size",
        CREATE,
        &[b"Transfer-Encoding: chunked"],
        b"zz\r\n{}\r\n0\r\n\r\n",
    ),
    (
        "two codings",
        CREATE,
        &[
            b"Transfer-Encoding: identity",
            b"Transfer-Encoding: chunked, identity",
        ],
        SMUGGLED,
    ),
    (
        "a coding with a control character",
        CREATE,
        &[b"Transfer-Encoding: \x0bchunked"],
        SMUGGLED,
    ),
    (
        "a length in the chunks",
        CREATE,
        &[b"Transfer-Encoding: chunked"],
        b"2;a=b\r\n{}garbage\r\n0\r\n\r\n",
    ),
    (
        "a long extension of a chunk",
        CREATE,
        &[b"Transfer-Encoding: chunked"],
        &{
            let mut body = [b'a'; 40_000];
            body[0] = b'2';
            body[1] = b';';
            body
        },
    ),
    (
        "a bare CR in a header",
        CREATE,
        &[b"X-A: 1\rContent-Length: 2"],
        b"{}",
    ),
    (
        "two hosts",
        "GET /v1/sessions HTTP/1.1",
        &[b"Host: evil.example"],
        b"",
    ),
    (
        "two tokens",
        "GET /v1/sessions HTTP/1.1",
        &[b"Authorization: Bearer wrong"],
        b"",
    ),
    (
        "half a chunk",
        CREATE,
        &[b"Content-Type: application/json", b"Transfer-Encoding: chunked"],
        b"a\r\n{",
    ),
    (
        "a space before the colon",
        CREATE,
        &[b"Content-Length : 2"],
        b"{}",
    ),
    ("a folded header", CREATE, &[b"X-A: 1\r\n  2"], b""),
    ("a NUL in a header", CREATE, &[b"X-A: \0"], b""),
    ("a NUL in a name", CREATE, &[b"X\0A: 1"], b""),
    (
        "a key that is not ASCII",
        CREATE,
        &[b"Idempotency-Key: \xff\xfe", b"Content-Length: 2"],
        b"{}",
    ),
    (
        "a path that is not UTF-8",
        "GET /v1/sessions/%ff%fe HTTP/1.1",
        &[],
        b"",
    ),
    ("a NUL in the path", "GET /v1/sessions/%00 HTTP/1.1", &[], b""),
    (
        "a query that is not UTF-8",
        "GET /v1/sessions?after=%ff HTTP/1.1",
        &[],
        b"",
    ),
    (
        "another host in the target",
        "GET http://evil.example/v1/sessions HTTP/1.1",
        &[],
        b"",
    ),
    ("an unknown version", "GET /v1/sessions HTTP/3.7", &[], b""),
    (
        "half a body",
        CREATE,
        &[b"Content-Type: application/json", b"Content-Length: 100"],
        b"{\"workdir\"",
    ),
];

/// Bytes that are no request.
const RAW: [(&str, &[u8]); 6] = [
    (
        "bytes in the path",
        b"GET /\xff\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ),
    ("no version", b"GET /v1/sessions\r\n\r\n"),
    ("HTTP/2 without TLS", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("half a header", b"POST /v1/sessions HTTP/1.1\r\nHost: loc"),
    ("bytes", &[0, 159, 146, 150, 13, 10, 13, 10]),
    ("nothing", b""),
];

/// Requests that are too large, or whose body is no JSON.
fn bodies(http: &Http) -> [(&'static str, Vec<u8>); 5] {
    let json: &[u8] = b"Content-Type: application/json";
    let (headers, long) = (b"X-A: 1\r\n".repeat(2_000), b"x".repeat(1 << 20));
    let path = format!("GET /{} HTTP/1.1", "a".repeat(100_000));
    let deep = b"[".repeat(100_000);
    [
        ("many headers", request(http, CREATE, &[&headers], b"")),
        (
            "a long header",
            request(http, CREATE, &[&[b"X-A: ".as_slice(), &long].concat()], b""),
        ),
        ("a long path", request(http, &path, &[], b"")),
        (
            "not UTF-8",
            request(http, CREATE, &[json, b"Content-Length: 4"], b"{\"\xff\""),
        ),
        (
            "too deep",
            request(http, CREATE, &[json, b"Content-Length: 100000"], &deep),
        ),
    ]
}

#[tokio::test]
async fn i6_a_malformed_request_is_refused_and_the_server_continues() {
    let http = Http::start(|settings| settings.http.header_ms = 2_000).await;
    let shapes = SHAPES.map(|(what, first, lines, body)| (what, request(&http, first, lines, body)));
    let raw = RAW.map(|(what, bytes)| (what, bytes.to_vec()));
    for (what, bytes) in shapes.into_iter().chain(raw).chain(bodies(&http)) {
        let statuses = statuses(&http, &bytes, what.starts_with("half")).await;
        let refused = match statuses.as_slice() {
            [] => true,
            [status] => (400..500).contains(status) || *status == 505,
            // A second answer: a part of a request was taken for another one.
            _ => false,
        };
        assert!(refused, "{what}: {statuses:?}");
    }
    assert_eq!(http.get("/v1/sessions").await.status, 200);
}

#[tokio::test]
async fn i6_mutated_requests_never_make_the_server_fail() {
    let http = Http::start(|settings| settings.http.header_ms = 2_000).await;
    let body = format!(
        "{{\"workdir\":{:?},\"labels\":{{\"a\":\"b\"}}}}",
        http.h.workdir()
    );
    let length = format!("Content-Length: {}", body.len());
    let lines = [b"Content-Type: application/json".as_slice(), length.as_bytes()];
    let original = request(&http, "POST /v1/sessions?x=%41 HTTP/1.1", &lines, body.as_bytes());
    // xorshift64: the same changes in each run.
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(below).unwrap()).unwrap()
    };
    for round in 0..400 {
        let mut bytes = original.clone();
        for _ in 0..=random(3) {
            let (from, length) = (random(bytes.len()), random(16));
            let to = (from + length).min(bytes.len());
            match random(4) {
                0 => bytes[from] = u8::try_from(random(256)).unwrap(),
                1 => drop(bytes.drain(from..to)),
                2 => {
                    let part = bytes[from..to].to_vec();
                    bytes.splice(from..from, part);
                }
                _ => bytes.truncate(from.max(1)),
            }
        }
        for status in statuses(&http, &bytes, true).await {
            let served = status < 500 || status == 505;
            assert!(served, "round {round}: {status} for {}", bytes.escape_ascii());
        }
    }
    assert_eq!(http.get("/v1/sessions").await.status, 200);
}
