use super::*;
use crate::http::http_client;
use agentd_settings::{Credential, ProviderConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const KEY: &str = "sk-embed-canary-123456";

/// A server that answers once and returns the request that it received.
async fn serve(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut got = Vec::new();
        let mut buffer = [0; 4_096];
        while !(got.ends_with(b"}")) {
            let read = stream.read(&mut buffer).await.unwrap();
            got.extend_from_slice(&buffer[..read]);
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(got).unwrap()
    });
    (url, served)
}

fn client(dialect: Dialect, base_url: &str) -> EmbedClient {
    let mut settings = Settings::default();
    let provider = ProviderConfig {
        dialect,
        base_url: base_url.to_owned(),
        credentials: vec![Credential {
            name: "main".into(),
            env: Some("EMBED_KEY".into()),
            ..Credential::default()
        }],
        ..ProviderConfig::default()
    };
    settings.providers.insert("embedding".into(), provider);
    settings.index.embedding.provider = "embedding".into();
    settings.index.embedding.model = "m".into();
    let http = http_client(Duration::from_secs(60)).unwrap();
    let env = |name: &str| (name == "EMBED_KEY").then(|| KEY.to_owned());
    EmbedClient::resolve(http, &settings, &env).unwrap().unwrap()
}

const MINUTE: Duration = Duration::from_secs(60);

fn texts() -> Vec<String> {
    vec!["one".into(), "two".into()]
}

fn ok(body: &str) -> &'static str {
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    Box::leak(answer.into_boxed_str())
}

#[tokio::test]
async fn openais_protocol_gives_vectors_in_the_order_of_the_texts() {
    let body = r#"{"data":[{"index":1,"embedding":[0.0,2.5]},{"index":0,"embedding":[1,0]}]}"#;
    let (url, served) = serve(ok(body)).await;
    let client = client(Dialect::OpenaiChat, &format!("{url}/v1/"));
    let vectors = client.embed(&texts(), MINUTE).await.unwrap();
    assert_eq!(vectors, [vec![1.0, 0.0], vec![0.0, 2.5]]);
    let got = served.await.unwrap();
    assert!(got.starts_with("POST /v1/embeddings HTTP/1.1"), "{got}");
    assert!(got.contains(&format!("authorization: Bearer {KEY}")), "{got}");
    assert!(got.contains(r#""input":["one","two"]"#), "{got}");
}

#[tokio::test]
async fn ollamas_protocol_is_spoken_too() {
    let (url, served) = serve(ok(r#"{"embeddings":[[1,2],[3,4]]}"#)).await;
    let client = client(Dialect::Ollama, &url);
    let vectors = client.embed(&texts(), MINUTE).await.unwrap();
    assert_eq!(vectors, [vec![1.0, 2.0], vec![3.0, 4.0]]);
    assert!(served.await.unwrap().starts_with("POST /api/embed HTTP/1.1"));
}

#[tokio::test]
async fn i8_a_refusal_does_not_tell_the_key() {
    let body = format!("{{\"error\":{{\"message\":\"bad key {KEY}\"}}}}");
    let answer = format!(
        "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (url, _served) = serve(Box::leak(answer.into_boxed_str())).await;
    let error = client(Dialect::OpenaiChat, &url)
        .embed(&texts(), MINUTE)
        .await
        .unwrap_err();
    assert_eq!(error.class, FailureClass::Auth);
    assert!(!error.is_passing() && !error.message.contains(KEY), "{error}");
    assert!(!format!("{:?}", client(Dialect::OpenaiChat, &url)).contains(KEY));
}

#[tokio::test(start_paused = true)]
async fn i6_a_server_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let error = client(Dialect::OpenaiChat, &url)
        .embed(&texts(), Duration::from_millis(50))
        .await
        .unwrap_err();
    assert!(error.is_passing(), "{error}");
}

#[test]
fn i7_an_answer_that_is_not_one_vector_for_each_text_is_none() {
    for body in [
        r#"{"data":[]}"#,
        r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
        r#"{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}"#,
        r#"{"embeddings":[[1]]}"#,
        r#"{"embeddings":[["a"],[1]]}"#,
        r#"{"embeddings":[[],[1]]}"#,
        r#"{"other":1}"#,
        "no",
    ] {
        assert!(vectors(body.as_bytes(), 2).is_err(), "{body}");
    }
    let long = json!({ "embeddings": [vec![0.5; MAX_DIMENSIONS + 1]] }).to_string();
    assert!(vectors(long.as_bytes(), 1).is_err());
}

#[test]
fn without_a_provider_there_is_none_and_without_its_key_the_fix_is_told() {
    let http = || http_client(MINUTE).unwrap();
    let mut settings = Settings::default();
    assert!(
        EmbedClient::resolve(http(), &settings, &|_| None)
            .unwrap()
            .is_none()
    );
    settings.index.embedding.provider = "openai".into();
    settings.index.embedding.model = "text-embedding-3-small".into();
    let why = EmbedClient::resolve(http(), &settings, &|_| None).unwrap_err();
    assert!(why.contains("OPENAI_API_KEY"), "{why}");
}
