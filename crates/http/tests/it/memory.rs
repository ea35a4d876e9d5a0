//! Bodies: none is read for a caller without the right, and all of them share one bound.

use crate::server::{Answer, Http, answer, token};
use serde_json::json;

/// As many bytes as a body may have.
const LARGE: usize = 8 << 20;

/// Sends a head that announces a body, and nothing of the body; returns the answer.
async fn announced(http: &Http, path: &str, headers: &str) -> Answer {
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}\r\n");
    answer(&mut http.send(head.as_bytes()).await).await
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// A server on which a body that is waited for ends in 408 or 503 at once.
async fn hasty() -> Http {
    Http::start(|settings| {
        settings.http.body_ms = 1_000;
        settings.http.body_wait_ms = 1;
        settings.http.sign_in_ms = 100;
        settings.limits.frames_bytes = 1 << 20;
    })
    .await
}

#[tokio::test]
async fn redteam_50_i6_no_body_is_read_for_a_caller_without_the_right() {
    let http = hasty().await;
    http.h.session("ours").await;
    let reader = bearer(&token(&http.h, "reader", &["read"]).await);
    let params =
        json!({"name": "team", "scopes": ["read", "steer", "approve", "admin"], "labels": {"team": "b"}});
    let created = http.h.call("token.create", params).await.unwrap();
    let team = bearer(created["token"].as_str().unwrap());
    let (ana, wrong) = (bearer(&http.ana), bearer("wrong"));
    let over = format!("Content-Length: {}\r\n", LARGE + 1);
    // Memory is full, so a body that is waited for is answered with 503.
    let account = http.h.api.memory().account();
    let _all = account.take(1 << 20).await.unwrap();
    for length in [
        format!("Content-Length: {LARGE}\r\n"),
        "Transfer-Encoding: chunked\r\n".to_owned(),
    ] {
        for (path, who, status, code) in [
            ("/v1/sessions", "", 401, "token_missing"),
            ("/v1/sessions", &*wrong, 401, "bad_token"),
            ("/v1/sessions", &*reader, 403, "missing_scope"),
            ("/v1/imports", &*reader, 403, "missing_scope"),
            ("/v1/approvals/x/decision", &*reader, 403, "missing_scope"),
            ("/v1/tokens", &*team, 403, "beyond_labels"),
            ("/v1/sessions/ours/inputs", &*team, 404, "unknown_session"),
            ("/v1/sessions/ours/apply", &*team, 404, "unknown_session"),
            ("/v1/node/call", &*ana, 401, "no_fleet"),
            ("/v1/nowhere", &*ana, 404, "unknown_path"),
        ] {
            let refused = announced(&http, path, &format!("{who}{length}")).await;
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (status, code),
                "{path} {length}"
            );
        }
    }
    for (path, who) in [("/v1/sessions", &*ana), ("/v1/sign-in", "")] {
        let refused = announced(&http, path, &format!("{who}{over}")).await;
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (413, "body_too_large"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn redteam_control_50_the_body_of_a_caller_with_the_right_is_read() {
    let http = hasty().await;
    let ana = bearer(&http.ana);
    let waited = announced(
        &http,
        "/v1/sessions",
        &format!("{ana}Content-Length: {}\r\n", 1 << 20),
    )
    .await;
    assert_eq!((waited.status, waited.code().as_str()), (408, "body_late"));
    let account = http.h.api.memory().account();
    let _all = account.take(1 << 20).await.unwrap();
    let waited = announced(
        &http,
        "/v1/sessions",
        &format!("{ana}Content-Length: {LARGE}\r\n"),
    )
    .await;
    assert_eq!((waited.status, waited.code().as_str()), (503, "bodies_full"));
    assert!(waited.head.contains("retry-after:"), "{waited:?}");
}

/// A body of this many bytes.
async fn send(http: &Http, length: usize) -> Answer {
    let filled = format!("{{\"title\":\"{}\"}}", "x".repeat(length - 12));
    assert_eq!(filled.len(), length);
    let json = "Content-Type: application/json\r\n";
    http.ask("POST", "/v1/sessions/nothing/inputs", json, &filled)
        .await
}

#[tokio::test]
async fn redteam_50_i6_bodies_and_frames_share_one_bound() {
    let http = hasty().await;
    let account = http.h.api.memory().account();
    let half = account.take(512 << 10).await.unwrap();
    assert_ne!(
        send(&http, 512 << 10).await.status,
        503,
        "it fits to the last byte"
    );
    let refused = send(&http, (512 << 10) + 1).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "bodies_full"));
    let rest = account.take(512 << 10).await.unwrap();
    assert_eq!(send(&http, 65 << 10).await.status, 503);
    assert_ne!(
        send(&http, 64 << 10).await.status,
        503,
        "small bodies always pass"
    );
    // Without a length, a body takes more as soon as it is longer than a small one.
    for (length, waits) in [(15 << 10, false), (17 << 10, true)] {
        let chunk = format!("{length:x}\r\n{}\r\n0\r\n\r\n", " ".repeat(length));
        let head = format!(
            "{}Transfer-Encoding: chunked\r\nConnection: close\r\n",
            bearer(&http.ana)
        );
        let answered = announced(
            &http,
            "/v1/sessions/nothing/inputs",
            &format!("{head}\r\n{chunk}"),
        )
        .await;
        assert_eq!(answered.status == 503, waits, "{length}: {answered:?}");
    }
    drop((half, rest));
    assert_ne!(send(&http, 1 << 20).await.status, 503);
    // A request gives its memory back.
    assert_ne!(send(&http, 1 << 20).await.status, 503);
}
