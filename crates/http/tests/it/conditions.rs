//! `ETag`, `If-None-Match` and `If-Match`.

use crate::server::{Answer, Http};
use agentd_protocol::SessionId;
use serde_json::json;

fn tag(answer: &Answer) -> String {
    let line = answer.head.lines().find_map(|line| line.strip_prefix("etag: "));
    line.unwrap_or_else(|| panic!("no ETag: {answer:?}")).to_owned()
}

async fn update(http: &Http, session: SessionId, condition: &str, body: &str) -> Answer {
    let headers = format!("Content-Type: application/json\r\n{condition}");
    http.ask("PATCH", &format!("/v1/sessions/{session}"), &headers, body)
        .await
}

#[tokio::test]
async fn an_update_that_expects_other_settings_is_refused_with_a_hint() {
    let http = Http::start(|_| {}).await;
    let session = http.h.session("one").await;
    let place = format!("/v1/sessions/{session}");
    let first = tag(&http.get(&place).await);
    let condition = format!("If-Match: {first}\r\n");
    // An event that changes no setting changes the tag, but the settings are still those that the client has read.
    http.h.log.note(session, "hello").await;
    assert_ne!(tag(&http.get(&place).await), first);
    let done = update(&http, session, &condition, r#"{"mode":"plan"}"#).await;
    assert_eq!(done.status, 200, "{done:?}");
    let late = update(&http, session, &condition, r#"{"mode":"default"}"#).await;
    assert_eq!((late.status, late.code().as_str()), (412, "settings_changed"));
    assert!(
        late.json()["hint"]
            .as_str()
            .unwrap()
            .contains("read the session again")
    );
    let second = tag(&http.get(&place).await);
    for (condition, status) in [
        (format!("If-Match: W/{second}\r\n"), 412),
        (format!("If-Match: \"x\", {first}\r\n"), 412),
        (format!("If-Match: {first}\r\nIf-Match: {second}\r\n"), 200),
        ("If-Match: *\r\n".to_owned(), 200),
        ("If-Match: x\r\n".to_owned(), 400),
    ] {
        let answer = update(&http, session, &condition, r#"{"mode":"plan"}"#).await;
        assert_eq!(answer.status, status, "{condition} {answer:?}");
    }
    let missing = update(&http, SessionId::NIL, "If-Match: *\r\n", r#"{"mode":"plan"}"#).await;
    assert_eq!(missing.status, 404);
}

#[tokio::test]
async fn each_transport_can_expect_settings() {
    let http = Http::start(|_| {}).await;
    let session = http.h.session("one").await;
    let read = http
        .h
        .call("session.get", json!({"session": session}))
        .await
        .unwrap();
    let expected = json!({"session": session, "expect": read["settings_tag"], "mode": "plan"});
    http.h.call("session.update", expected.clone()).await.unwrap();
    let late = http.h.call("session.update", expected).await.unwrap_err();
    assert_eq!(late.code, "settings_changed");
    // A tag changes nothing by itself.
    let nothing = json!({"session": session, "expect": "x"});
    let nothing = http.h.call("session.update", nothing).await.unwrap_err();
    assert_eq!(nothing.code, "nothing_to_update");
    let tag = tag(&http.get(&format!("/v1/sessions/{session}")).await);
    let body = r#"{"mode":"plan","expect":"other"}"#;
    let both = update(&http, session, &format!("If-Match: {tag}\r\n"), body).await;
    assert_eq!((both.status, both.code().as_str()), (400, "bad_params"));
}

#[tokio::test]
async fn an_unchanged_answer_is_not_sent_again() {
    let http = Http::start(|_| {}).await;
    let session = http.h.session("one").await;
    let place = format!("/v1/sessions/{session}");
    let first = tag(&http.get(&place).await);
    for condition in [first.clone(), format!("\"x\", W/{first}"), "*".to_owned()] {
        let same = http
            .ask("GET", &place, &format!("If-None-Match: {condition}\r\n"), "")
            .await;
        assert_eq!((same.status, same.body.as_str()), (304, ""), "{condition}");
        assert_eq!(tag(&same), first);
    }
    http.h.log.note(session, "hello").await;
    let condition = format!("If-None-Match: {first}\r\n");
    assert_eq!(http.ask("GET", &place, &condition, "").await.status, 200);
}
