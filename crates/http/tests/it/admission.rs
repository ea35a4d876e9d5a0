//! Who gets in.

use crate::server::{Http, LONG, answer, token};
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

#[tokio::test]
async fn i7_every_request_needs_a_token_with_the_right_scope() {
    let http = Http::start(|_| {}).await;
    let importer = token(&http.h, "importer", &["import"]).await;
    let importer = format!("Authorization: Bearer {importer}\r\n");
    for path in ["/v1/sessions", "/v1/events", "/v1/wire", "/v1/nowhere"] {
        let refused = http.raw("GET", path, "", "").await;
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (401, "token_missing"),
            "{path}"
        );
        assert!(refused.head.contains("www-authenticate: bearer"), "{refused:?}");
        let refused = http.raw("GET", path, "Authorization: Bearer wrong\r\n", "").await;
        assert_eq!((refused.status, refused.code().as_str()), (401, "bad_token"));
        let refused = http
            .raw("GET", path, "Authorization: Basic YW5hOmFuYQ==\r\n", "")
            .await;
        assert_eq!((refused.status, refused.code().as_str()), (401, "token_missing"));
    }
    let refused = http.raw("GET", "/v1/sessions", &importer, "").await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "missing_scope"));
    assert_eq!(http.get("/v1/sessions").await.status, 200);
    assert_eq!(http.raw("GET", "/healthz", "", "").await.body, "ok\n");
    assert_eq!(http.raw("GET", "/readyz", "", "").await.body, "ready\n");
}

#[tokio::test]
async fn a_foreign_host_and_a_foreign_origin_are_refused() {
    let http = Http::start(|settings| {
        settings.http.hosts = vec!["agents.example".to_owned()];
        settings.http.origins = vec!["https://ui.example".to_owned()];
    })
    .await;
    for host in [
        "localhost:7433",
        "127.0.0.1",
        "127.0.0.1:7433",
        "Agents.Example:443",
    ] {
        assert_eq!(
            http.ask("GET", "/v1/rules", &format!("Host: {host}\r\n"), "")
                .await
                .status,
            200,
            "{host}"
        );
    }
    for host in [
        "evil.example",
        "agents.example.evil",
        "localhost.evil:7433",
        "192.0.2.1",
        "0.0.0.0:7433",
    ] {
        let refused = http
            .ask("GET", "/v1/rules", &format!("Host: {host}\r\n"), "")
            .await;
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (421, "unknown_host"),
            "{host}"
        );
    }
    let page = http
        .ask("GET", "/v1/rules", "Origin: https://ui.example\r\n", "")
        .await;
    assert!(
        page.head
            .contains("access-control-allow-origin: https://ui.example"),
        "{page:?}"
    );
    let refused = http
        .ask("GET", "/v1/rules", "Origin: https://evil.example\r\n", "")
        .await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "foreign_origin"));
}

#[tokio::test]
async fn i6_the_request_rate_is_limited_per_token() {
    let http = Http::start(|settings| settings.http.requests_per_second = 1).await;
    let bob = format!(
        "Authorization: Bearer {}\r\n",
        token(&http.h, "bob", &["read"]).await
    );
    assert_eq!(http.get("/v1/rules").await.status, 200);
    let mut refused = http.get("/v1/rules").await;
    // On a slow machine a second may pass between two requests.
    while refused.status == 200 {
        refused = http.get("/v1/rules").await;
    }
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (429, "too_many_requests")
    );
    assert!(refused.head.contains("retry-after: 1"));
    assert_eq!(http.raw("GET", "/v1/rules", &bob, "").await.status, 200);
}

#[tokio::test]
async fn i6_bodies_and_headers_over_their_limits_are_refused() {
    let http = Http::start(|settings| settings.http.max_body_bytes = 2_048).await;
    let json = "Content-Type: application/json\r\n";
    let prompt = |length| format!("{{\"title\":\"{}\"}}", "x".repeat(length));
    let large = http.ask("POST", "/v1/sessions", json, &prompt(2_048 - 11)).await;
    assert_eq!((large.status, large.code().as_str()), (413, "body_too_large"));
    let at_the_limit = http.ask("POST", "/v1/sessions", json, &prompt(2_048 - 12)).await;
    assert_ne!(at_the_limit.code(), "body_too_large");
    let header = format!("X-Long: {}\r\n", "x".repeat(32 << 10));
    assert_eq!(http.ask("GET", "/v1/rules", &header, "").await.status, 431);
    for request in [
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
        "\u{0}\r\n\r\n",
    ] {
        let refused = answer(&mut http.send(request.as_bytes()).await).await;
        assert!((400..500).contains(&refused.status), "{refused:?}");
    }
    assert_eq!(http.get("/v1/rules").await.status, 200);
}

#[tokio::test]
async fn i6_an_idle_connection_gives_its_seat_to_another() {
    let http = Http::start(|settings| {
        settings.http.connections = 1;
        settings.http.header_ms = 1_000;
    })
    .await;
    let mut silent = http.send(b"GET /v1/rules HTT").await;
    assert_eq!(http.get("/v1/rules").await.status, 200);
    // The silent one is closed.
    let mut rest = Vec::new();
    timeout(LONG, silent.read_to_end(&mut rest)).await.unwrap().ok();
}
