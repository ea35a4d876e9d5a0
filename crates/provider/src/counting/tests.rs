use super::*;
use crate::body::{EncodedHistory, Params, Prompt, ToolDef, encode_prefix, encode_suffix};
use crate::http::http_client;
use crate::script::Script;
use crate::secret::Secret;
use agentd_protocol::{Block, Message, Role};
use agentd_settings::Dialect;
use serde_json::json;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

fn spec(dialect: Dialect, base_url: &str) -> ModelSpec {
    let key = Credential {
        name: "main".into(),
        found_in: "KEY".into(),
        secret: Secret::new("sk-test"),
    };
    let local = matches!(
        dialect,
        Dialect::OpenaiChat | Dialect::LlamaCompletion | Dialect::Ollama
    );
    ModelSpec {
        dialect,
        base_url: base_url.to_owned(),
        credentials: if local { Vec::new() } else { vec![key] },
        ..ModelSpec::scripted("m", Arc::new(Script::builtin()))
    }
}

fn body(spec: &ModelSpec) -> RequestBody {
    let message = Message {
        role: Role::User,
        content: vec![Block::text("hello")],
    };
    let tools = [ToolDef {
        name: "Read".into(),
        description: "reads".into(),
        schema: json!({"type": "object"}).into(),
    }];
    let mut history = EncodedHistory::new();
    history.extend(spec, 0, &[Arc::new(message)]);
    let params = Params::default();
    RequestBody::new(
        encode_prefix(spec, &Prompt::of("s"), &tools, &params),
        &history,
        encode_suffix(spec, &tools, &params),
    )
}

/// A server that gives these answers in turn, and passes on the requests that it receives.
async fn server(answers: Vec<(&'static str, String)>) -> (String, UnboundedReceiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tx, asked) = unbounded_channel();
    tokio::spawn(async move {
        for (status, answer) in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            let (line, sent) = loop {
                let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
                let head = end.map(|end| String::from_utf8_lossy(&bytes[..end]).to_lowercase());
                if let (Some(end), Some(head)) = (end, head) {
                    let length = head
                        .lines()
                        .find_map(|line| line.strip_prefix("content-length: "));
                    let length: usize = length.unwrap().parse().unwrap();
                    if bytes.len() >= end + 4 + length {
                        let line = head.lines().next().unwrap().to_owned();
                        break (line, serde_json::from_slice(&bytes[end + 4..]).unwrap());
                    }
                }
                assert_ne!(
                    socket.read_buf(&mut bytes).await.unwrap(),
                    0,
                    "the request ended early"
                );
            };
            tx.send((line, sent)).unwrap();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            socket.write_all(head.as_bytes()).await.unwrap();
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, asked)
}

async fn counted(spec: &ModelSpec, within: Duration) -> Counted {
    let client = http_client(spec.deadlines.connect).unwrap();
    count_tokens(&client, spec, spec.credential(None), &body(spec), within).await
}

const LONG: Duration = Duration::from_secs(60);

/// Counts a request at a server with this answer; also returns the request that the server received.
async fn asked(dialect: Dialect, path: &str, answer: Value) -> (Counted, String, Value) {
    let (url, mut asked) = server(vec![("200 OK", answer.to_string())]).await;
    let counted = counted(&spec(dialect, &format!("{url}{path}")), LONG).await;
    let (line, sent) = asked.recv().await.unwrap();
    (counted, line, sent)
}

fn fields(sent: &Value) -> Vec<&str> {
    let mut fields: Vec<&str> = sent.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

#[tokio::test]
async fn each_kind_of_server_is_asked_at_its_place_and_in_its_words() {
    let (counted, line, sent) = asked(Dialect::Anthropic, "", json!({"input_tokens": 14})).await;
    assert_eq!(counted, Counted::Tokens(14));
    assert_eq!(line, "post /v1/messages/count_tokens http/1.1");
    assert_eq!(fields(&sent), ["messages", "model", "system", "tools"]);

    let answer = json!({"object": "response.input_tokens", "input_tokens": 11});
    let (counted, line, sent) = asked(Dialect::OpenaiResponses, "/v1", answer).await;
    assert_eq!(counted, Counted::Tokens(11));
    assert_eq!(line, "post /v1/responses/input_tokens http/1.1");
    assert_eq!(fields(&sent), ["input", "model", "tools"]);

    let answer = json!({"totalTokens": 31, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 31}]});
    let (counted, line, sent) = asked(Dialect::Gemini, "", answer).await;
    assert_eq!(counted, Counted::Tokens(31));
    assert_eq!(line, "post /v1beta/models/m:counttokens http/1.1");
    let inside = &sent["generateContentRequest"];
    assert_eq!(inside["model"], "models/m");
    assert_eq!(inside["contents"][0]["parts"][0]["text"], "hello");

    for dialect in [Dialect::OpenaiChat, Dialect::LlamaCompletion] {
        let (counted, line, sent) = asked(dialect, "/v1", json!({"input_tokens": 9})).await;
        assert_eq!(counted, Counted::Tokens(9));
        assert_eq!(line, "post /v1/chat/completions/input_tokens http/1.1");
        assert_eq!(sent["messages"][1]["content"], "hello", "{sent}");
        assert!(sent.get("stream").is_none(), "{sent}");
    }
}

#[tokio::test]
async fn a_server_without_the_one_address_may_have_the_other() {
    let answer = json!({"count": 3, "max_model_len": 4_096, "tokens": [1, 2, 3]}).to_string();
    let (url, mut asked) = server(vec![("404 Not Found", "{}".to_owned()), ("200 OK", answer)]).await;
    let counted = counted(&spec(Dialect::OpenaiChat, &format!("{url}/v1")), LONG).await;
    assert_eq!(counted, Counted::Tokens(3));
    asked.recv().await.unwrap();
    let (line, sent) = asked.recv().await.unwrap();
    assert_eq!(line, "post /tokenize http/1.1");
    assert_eq!(fields(&sent), ["messages", "model", "tools"]);
}

#[tokio::test]
async fn i6_what_cannot_be_counted_is_told_apart_and_never_waited_for() {
    let check = |status, answer: &str, expected| {
        let answers = vec![(status, answer.to_owned())];
        async move {
            let (url, _asked) = server(answers).await;
            let counted = counted(&spec(Dialect::Anthropic, &url), LONG).await;
            assert_eq!(counted, expected, "{status}");
        }
    };
    check("404 Not Found", "{}", Counted::Never).await;
    check("405 Method Not Allowed", "", Counted::Never).await;
    check("429 Too Many Requests", "{}", Counted::Failed).await;
    check("500 Internal Server Error", "<html>", Counted::Failed).await;
    check("200 OK", "garbage", Counted::Failed).await;
    check("200 OK", r#"{"input_tokens": "many"}"#, Counted::Failed).await;
    check("200 OK", r#"{"input_tokens": 0}"#, Counted::Failed).await;
    // The server accepts the connection and stays silent.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let hanging = counted(&spec(Dialect::Anthropic, &url), Duration::from_millis(200)).await;
    assert_eq!(hanging, Counted::Failed);
}

#[test]
fn servers_that_do_not_count_are_not_asked() {
    assert!(!may_count(&spec(Dialect::Ollama, "http://127.0.0.1:11434")));
    assert!(!may_count(&spec(Dialect::Scripted, "")));
    assert!(may_count(&spec(Dialect::OpenaiChat, "http://127.0.0.1:8080/v1")));
    let cloud = ModelSpec {
        credentials: spec(Dialect::Anthropic, "").credentials,
        ..spec(Dialect::OpenaiChat, "https://api.example/v1")
    };
    assert!(!may_count(&cloud));
}
