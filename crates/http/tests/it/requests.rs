//! Requests with a single answer.

use crate::server::{Http, token};
use serde_json::json;

#[tokio::test]
async fn a_session_is_created_read_listed_changed_and_deleted() {
    let http = Http::start(|_| {}).await;
    let workdir = http.h.workdir();
    let created = http
        .post("/v1/sessions", &json!({"workdir": workdir, "title": "one"}))
        .await;
    assert_eq!(created.status, 201, "{created:?}");
    let session = created.json()["session"].as_str().unwrap().to_owned();
    let place = format!("/v1/sessions/{session}");
    assert!(
        created.head.contains(&format!("location: {place}")),
        "{created:?}"
    );
    assert_eq!(http.get(&place).await.json()["name"], "one");
    assert_eq!(
        http.get("/v1/sessions/one").await.json()["session"],
        session.as_str()
    );
    let list = http.get("/v1/sessions?limit=10&labels=!team").await.json();
    assert_eq!(list["items"][0]["session"], session.as_str());
    assert!(list["next"].is_null());
    let change = http
        .ask(
            "PATCH",
            &place,
            "Content-Type: application/json\r\n",
            r#"{"title":"two"}"#,
        )
        .await;
    assert_eq!(change.status, 200, "{change:?}");
    let unknown = http.get("/v1/sessions/nothing-like-it").await;
    assert_eq!(
        (unknown.status, unknown.code().as_str()),
        (404, "unknown_session")
    );
}

#[tokio::test]
async fn lists_come_in_pages() {
    let http = Http::start(|_| {}).await;
    for title in ["a", "b", "c"] {
        http.h.session(title).await;
    }
    let (mut seen, mut path) = (Vec::new(), "/v1/sessions?limit=2".to_owned());
    loop {
        let page = http.get(&path).await.json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/sessions?limit=2&after={next}"),
            None => break,
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, ["a", "b", "c"]);
}

#[tokio::test]
async fn an_invalid_request_is_refused_with_the_reason() {
    let http = Http::start(|_| {}).await;
    let json_body = "Content-Type: application/json\r\n";
    for (verb, path, headers, body, status, code) in [
        ("POST", "/v1/sessions", json_body, "{", 400, "bad_json"),
        ("POST", "/v1/sessions", json_body, "[]", 400, "bad_json"),
        (
            "POST",
            "/v1/sessions",
            json_body,
            r#"{"budget":{"usd":1,"usd":9}}"#,
            400,
            "bad_json",
        ),
        (
            "POST",
            "/v1/sessions",
            json_body,
            r#"{"workdr":"/"}"#,
            400,
            "bad_params",
        ),
        ("POST", "/v1/sessions", "", "{}", 415, "not_json"),
        ("GET", "/v1/sessions?al=true", "", "", 400, "bad_params"),
        ("GET", "/v1/sessions/%ff", "", "", 400, "bad_path"),
        ("PUT", "/v1/sessions", "", "", 405, "unknown_verb"),
        ("GET", "/v1/session", "", "", 404, "unknown_path"),
        ("GET", "/v1/wire", "", "", 400, "not_websocket"),
    ] {
        let answer = http.ask(verb, path, headers, body).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{verb} {path}"
        );
    }
    let wrong = http.post("/v1/sessions", &json!({"workdir": 7})).await;
    assert_eq!(wrong.json()["field"], "workdir");
}

#[tokio::test]
async fn redteam_waiting_without_read_is_refused_before_the_session_runs() {
    let http = Http::start(|_| {}).await;
    let steers = token(&http.h, "steers", &["steer"]).await;
    let body = json!({"workdir": http.h.workdir(), "prompt": "go"}).to_string();
    let create = async |more: &str| {
        let headers = format!("Authorization: Bearer {steers}\r\nContent-Type: application/json\r\n{more}");
        http.raw("POST", "/v1/sessions", &headers, &body).await
    };
    let sessions = async || {
        http.get("/v1/sessions").await.json()["items"]
            .as_array()
            .unwrap()
            .len()
    };
    let refused = create("Prefer: wait=1\r\n").await;
    assert_eq!(
        (refused.status, refused.code()),
        (403, "missing_scope".to_owned())
    );
    assert_eq!(sessions().await, 0);
    assert_eq!(create("").await.status, 201, "positive control");
    assert_eq!(sessions().await, 1);
}
