//! The header `Idempotency-Key`.

use crate::server::{Answer, Http, token};
use serde_json::{Value, json};

/// A POST with a key.
async fn keyed(http: &Http, path: &str, key: &str, body: &Value) -> Answer {
    let headers = format!("Content-Type: application/json\r\nIdempotency-Key: {key}\r\n");
    http.ask("POST", path, &headers, &body.to_string()).await
}

#[tokio::test]
async fn a_key_makes_a_request_happen_once() {
    let http = Http::start(|_| {}).await;
    let headers = "Content-Type: application/json\r\nIdempotency-Key: k1\r\n";
    let body = json!({"workdir": http.h.workdir()}).to_string();
    let first = http.ask("POST", "/v1/sessions", headers, &body).await;
    let second = http.ask("POST", "/v1/sessions", headers, &body).await;
    assert_eq!((first.status, first.json()), (201, second.json()));
    let other = json!({"workdir": http.h.workdir(), "title": "other"}).to_string();
    let conflict = http.ask("POST", "/v1/sessions", headers, &other).await;
    assert_eq!((conflict.status, conflict.code().as_str()), (422, "key_reused"));
    let two = json!({"workdir": http.h.workdir(), "key": "k2"}).to_string();
    assert_eq!(http.ask("POST", "/v1/sessions", headers, &two).await.status, 400);
}

#[tokio::test]
async fn a_repetition_of_any_post_gets_the_first_answer() {
    let http = Http::start(|_| {}).await;
    let session = http.h.session("one").await;
    let approval = http.h.log.ask(session, "Write").await;
    let before = http.h.played.lock().unwrap().routed;
    let decision = format!("/v1/approvals/{approval}/decision");
    let allow = json!({"decision": "allow", "policy": true});
    let first = keyed(&http, &decision, "k", &allow).await;
    assert_eq!(first.status, 200, "{first:?}");
    let again = keyed(&http, &decision, "k", &allow).await;
    assert_eq!((again.status, again.json()), (200, first.json()));
    // Without the key, it is another decision on the same question.
    assert_eq!(http.post(&decision, &allow).await.status, 409);
    let other = keyed(&http, &decision, "k", &json!({"decision": "deny"})).await;
    assert_eq!((other.status, other.code().as_str()), (422, "key_reused"));
    let elsewhere = keyed(&http, &format!("/v1/sessions/{session}/pause"), "k", &json!({})).await;
    assert_eq!((elsewhere.status, elsewhere.code().as_str()), (422, "key_reused"));
    let close = format!("/v1/sessions/{session}/close");
    for _ in 0..2 {
        assert_eq!(keyed(&http, &close, "c", &json!({})).await.status, 200);
    }
    assert_eq!(http.h.played.lock().unwrap().routed - before, 3);
}

#[tokio::test]
async fn an_invalid_key_is_refused_and_answers_require_the_scope_of_the_method() {
    let http = Http::start(|_| {}).await;
    let session = http.h.session("one").await;
    let pause = format!("/v1/sessions/{session}/pause");
    let longest = "k".repeat(200);
    assert_eq!(keyed(&http, &pause, &longest, &json!({})).await.status, 200);
    let long = keyed(&http, &pause, &format!("{longest}k"), &json!({})).await;
    assert_eq!((long.status, long.code().as_str()), (400, "bad_key"));
    let control = keyed(
        &http,
        "/v1/imports",
        "a\tb",
        &json!({"more": true, "lines": [""]}),
    )
    .await;
    assert_eq!((control.status, control.code().as_str()), (400, "bad_key"));
    let secret = json!({"name": "ci", "scopes": ["read"]});
    let refused = keyed(&http, "/v1/tokens", "k", &secret).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "bad_key"));
    assert!(refused.body.contains("secret"), "{refused:?}");
    let reader = token(&http.h, "reader", &["read"]).await;
    let headers = format!("Authorization: Bearer {reader}\r\nIdempotency-Key: {longest}\r\n");
    let denied = http.raw("POST", &pause, &headers, "").await;
    assert_eq!((denied.status, denied.code().as_str()), (403, "missing_scope"));
}

#[tokio::test]
async fn i6_the_answers_of_one_token_are_bounded_and_those_of_another_stay() {
    let http = Http::start(|settings| settings.http.keys_per_token = 1).await;
    let session = http.h.session("one").await;
    let pause = format!("/v1/sessions/{session}/pause");
    let steer = token(&http.h, "other", &["steer"]).await;
    let other = format!("Authorization: Bearer {steer}\r\nIdempotency-Key: a\r\n");
    assert_eq!(http.raw("POST", &pause, &other, "").await.status, 200);
    let before = http.h.played.lock().unwrap().routed;
    for key in ["a", "a", "b", "a"] {
        assert_eq!(keyed(&http, &pause, key, &json!({})).await.status, 200);
    }
    // The key b took the place of a, so a was carried out again.
    assert_eq!(http.h.played.lock().unwrap().routed - before, 3);
    assert_eq!(http.raw("POST", &pause, &other, "").await.status, 200);
    assert_eq!(http.h.played.lock().unwrap().routed - before, 3);
}
