use super::*;
use crate::http::http_client;
use agentd_settings::{ModelConfig, ProviderConfig};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The answers by path; other paths are answered with 404.
type Answers = &'static [(&'static str, &'static str)];

async fn answer(mut socket: TcpStream, answers: Answers) {
    let mut request = vec![0; 4_096];
    let read = socket.read(&mut request).await.unwrap();
    let request = String::from_utf8_lossy(&request[..read]).into_owned();
    let found = answers.iter().find(|(start, _)| request.starts_with(start));
    let (status, body) = found.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", *body));
    let head = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all((head + body).as_bytes()).await.unwrap();
}

/// Probes a local server that gives these answers, or one that accepts connections and stays silent.
async fn probe(dialect: Dialect, path: &str, answers: Option<Answers>) -> Vec<LocalServer> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}{path}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            match answers {
                Some(answers) => drop(tokio::spawn(answer(socket, answers))),
                None => open.push(socket),
            }
        }
    });
    let mut settings = Settings::default();
    settings.providers.clear();
    settings.models.clear();
    let provider = ProviderConfig {
        dialect,
        base_url,
        ..ProviderConfig::default()
    };
    settings.providers.insert("local".into(), provider);
    let model = ModelConfig {
        provider: "local".into(),
        model: "qwen3".into(),
        ..ModelConfig::default()
    };
    settings.models.insert("m".into(), model);
    let within = match answers {
        Some(_) => Duration::from_secs(60),
        None => WITHIN,
    };
    let client = http_client(Duration::from_secs(60)).unwrap();
    let found = probe_within(&client, &Arc::new(settings), within).await;
    server.abort();
    found
}

fn windows(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
    of.iter()
        .map(|(name, window)| ((*name).to_owned(), *window))
        .collect()
}

#[tokio::test]
async fn a_server_tells_which_models_can_talk_and_how_much_they_hold() {
    const ANSWERS: Answers = &[(
        "GET /v1/models ",
        r#"{"data":[{"id":"nomic-embed-text"},{"id":"qwen3:8b"},{"id":"a","max_model_len":4096},{"id":"b","meta":{"n_ctx":512}}]}"#,
    )];
    let expected = LocalServer {
        provider: "local".into(),
        models: vec!["qwen3:8b".into(), "a".into(), "b".into()],
        windows: windows(&[("a", 4_096), ("b", 512)]),
        ..LocalServer::default()
    };
    assert_eq!(probe(Dialect::OpenaiChat, "/v1", Some(ANSWERS)).await, [expected]);
}

#[tokio::test]
async fn llama_cpp_tells_its_window_and_its_slots() {
    const ANSWERS: Answers = &[
        (
            "GET /v1/models ",
            r#"{"data":[{"id":"/models/q.gguf","meta":{"n_ctx_train":131072}}]}"#,
        ),
        (
            "GET /props ",
            r#"{"default_generation_settings":{"n_ctx":8192},"total_slots":4,"modalities":{"vision":true}}"#,
        ),
    ];
    let expected = |model: &str| LocalServer {
        provider: "local".into(),
        models: vec![model.into()],
        windows: windows(&[(model, 8_192)]),
        seeing: vec![model.into()],
        slots: Some(4),
    };
    for (dialect, path) in [(Dialect::OpenaiChat, "/v1/"), (Dialect::LlamaCompletion, "")] {
        assert_eq!(
            probe(dialect, path, Some(ANSWERS)).await,
            [expected("/models/q.gguf")]
        );
    }
    assert_eq!(
        probe(Dialect::LlamaCompletion, "", Some(&ANSWERS[1..])).await,
        [expected("default")]
    );
}

#[tokio::test]
async fn ollama_tells_its_models_and_what_the_wanted_one_holds() {
    const ANSWERS: Answers = &[
        (
            "GET /api/tags ",
            r#"{"models":[{"name":"llama3:latest"},{"name":"qwen3:8b"},{"name":"nomic-embed-text:v1"}]}"#,
        ),
        (
            "POST /api/show ",
            r#"{"model_info":{"general.parameter_count":8,"qwen3.context_length":40960},"capabilities":["completion","vision"]}"#,
        ),
    ];
    let expected = LocalServer {
        provider: "local".into(),
        models: vec!["llama3:latest".into(), "qwen3:8b".into()],
        windows: windows(&[("qwen3:8b", 40_960)]),
        seeing: vec!["qwen3:8b".into()],
        slots: None,
    };
    assert_eq!(probe(Dialect::Ollama, "", Some(ANSWERS)).await, [expected]);
}

#[tokio::test]
async fn something_else_on_the_port_is_no_model_server() {
    for dialect in [Dialect::OpenaiChat, Dialect::Ollama, Dialect::LlamaCompletion] {
        let of = async |answers| probe(dialect, "/v1", Some(answers)).await;
        assert_eq!(of(&[("GET ", "<html>hello</html>")]).await, []);
        assert_eq!(of(&[("GET ", r#"{"data":[],"models":[]}"#)]).await, []);
        assert_eq!(of(&[]).await, []);
    }
}

#[tokio::test]
async fn a_silent_server_is_not_waited_for() {
    assert_eq!(probe(Dialect::OpenaiChat, "/v1", None).await, []);
    assert_eq!(probe(Dialect::Ollama, "", None).await, []);
}
