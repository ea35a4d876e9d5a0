//! The page: its files, and how a browser signs in.

use crate::server::Http;
use serde_json::json;

const JSON: &str = "Content-Type: application/json\r\n";

#[tokio::test]
async fn i7_a_link_signs_in_one_browser_with_exactly_its_scopes() {
    let http = Http::start(|_| {}).await;
    let made = http.post("/v1/links", &json!({"scopes": ["read"]})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let link = made.json();
    let body = json!({"code": link["code"]}).to_string();
    let url = link["url"].as_str().unwrap();
    assert!(
        url.ends_with(&format!("/ui/#code={}", link["code"].as_str().unwrap())),
        "{url}"
    );
    let other_site = format!("{JSON}Origin: https://evil.example\r\n");
    let refused = http.raw("POST", "/v1/sign-in", &other_site, &body).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "foreign_origin"));

    // The page's own origin is the host that it asks.
    let own = format!("{JSON}Origin: http://localhost\r\n");
    let signed_in = http.raw("POST", "/v1/sign-in", &own, &body).await;
    assert_eq!(signed_in.status, 200, "{signed_in:?}");
    assert!(
        signed_in.head.contains("cache-control: no-store"),
        "{signed_in:?}"
    );
    let token = format!(
        "Authorization: Bearer {}\r\n",
        signed_in.json()["token"].as_str().unwrap()
    );
    let me = http.raw("GET", "/v1/me", &token, "").await.json();
    let name = signed_in.json()["name"].as_str().unwrap().to_owned();
    assert_eq!(
        (&me["scopes"], &me["principal"]),
        (&json!(["read"]), &json!(format!("token:{name}")))
    );
    assert!(name.starts_with("ana-page-"), "{name}");
    assert_eq!(
        http.raw("POST", "/v1/sessions", &format!("{token}{JSON}"), "{}")
            .await
            .status,
        403
    );

    let again = http.raw("POST", "/v1/sign-in", &own, &body).await;
    assert_eq!((again.status, again.code().as_str()), (403, "bad_code"));
}

#[tokio::test]
async fn i6_a_sign_in_without_a_valid_code_is_refused() {
    let http = Http::start(|_| {}).await;
    let long = json!({"code": "a".repeat(5_000)}).to_string();
    for (headers, body, expected) in [
        (JSON, "{}", (400, "bad_params")),
        (JSON, "{\"code\": 3}", (400, "bad_params")),
        (JSON, "{\"code\": \"guessed\"}", (403, "bad_code")),
        (JSON, long.as_str(), (413, "body_too_large")),
        ("", "code=guessed", (415, "not_json")),
    ] {
        let refused = http.raw("POST", "/v1/sign-in", headers, body).await;
        assert_eq!((refused.status, refused.code().as_str()), expected, "{body}");
    }
}

#[tokio::test]
async fn i7_the_files_of_the_page_need_no_token_and_allow_no_foreign_content() {
    let http = Http::start(|_| {}).await;
    for path in ["/", "/ui"] {
        let moved = http.raw("GET", path, "", "").await;
        assert!(
            moved.status == 307 && moved.head.contains("location: /ui/"),
            "{moved:?}"
        );
    }
    let index = http.raw("GET", "/ui/", "", "").await;
    assert!(
        index
            .head
            .contains("content-security-policy: default-src 'self';"),
        "{index:?}"
    );
    assert!(index.head.contains("cache-control: no-cache"), "{index:?}");
    let script = index
        .body
        .split("src=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let script = script.expect("the page has a script").to_owned();
    let asset = http.raw("GET", &script, "", "").await;
    assert_eq!(asset.status, 200, "{script}");
    assert!(
        asset.head.contains("text/javascript") && asset.head.contains("immutable"),
        "{}",
        asset.head
    );
    let version = script.split('/').nth(2).unwrap();
    let old = http
        .raw("GET", &script.replace(version, "0011223344556677"), "", "")
        .await;
    assert_eq!(old.status, 404);
    let outside = http
        .raw("GET", &format!("/ui/{version}/../Cargo.toml"), "", "")
        .await;
    assert_ne!(outside.status, 200, "{outside:?}");
    let rebound = http.raw("GET", "/ui/", "Host: evil.example\r\n", "").await;
    assert_eq!((rebound.status, rebound.code().as_str()), (421, "unknown_host"));
}
