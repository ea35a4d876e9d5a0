use super::*;
use crate::body::{EncodedHistory, Params, Prompt, encode_prefix, encode_suffix};
use crate::http::http_client;
use crate::script::Script;
use crate::secret::Secret;
use crate::spec::Deadlines;
use agentd_protocol::{Block, Role, StopReason};
use agentd_settings::Dialect;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

#[derive(Default)]
struct Collected(String);

impl Sink for Collected {
    async fn send(&mut self, event: ModelEvent) {
        if let ModelEvent::TextDelta { text, .. } = event {
            self.0.push_str(&text);
        }
    }
}

const CHUNK: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn spec(base_url: &str) -> ModelSpec {
    let secret = Secret::new("sk-test-key");
    ModelSpec {
        dialect: Dialect::OpenaiChat,
        base_url: base_url.to_owned(),
        credentials: vec![Credential {
            name: "main".into(),
            found_in: "TEST_API_KEY".into(),
            secret,
        }],
        ..ModelSpec::scripted("m", Arc::new(Script::builtin()))
    }
}

fn conversation() -> Vec<Arc<Message>> {
    vec![Arc::new(Message {
        role: Role::User,
        content: vec![Block::text("hello")],
    })]
}

fn body(spec: &ModelSpec) -> RequestBody {
    let mut history = EncodedHistory::new();
    history.extend(spec, 0, &conversation());
    let params = Params::default();
    RequestBody::new(
        encode_prefix(spec, &Prompt::of("s"), &[], &params),
        &history,
        encode_suffix(spec, &[], &params),
    )
}

async fn make(spec: &ModelSpec) -> Result<(ModelReply, Latency), ModelError> {
    called(spec).await.answer
}

async fn called(spec: &ModelSpec) -> Called {
    let client = http_client(spec.deadlines.connect).unwrap();
    let request = Request {
        spec,
        credential: spec.credential(None),
        tools: &[],
        body: body(spec),
        messages: &[],
        attempt: 1,
    };
    call(&client, request, &mut Collected::default()).await
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    (listener, url)
}

/// Reads one request: its headers, and as much body as they announce.
async fn read_request(socket: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .unwrap();
            let length: usize = length.parse().unwrap();
            if bytes.len() >= end + 4 + length {
                return (head, bytes[end + 4..].to_vec());
            }
        }
        assert_ne!(
            socket.read_buf(&mut bytes).await.unwrap(),
            0,
            "the request ended early"
        );
    }
}

/// A server that answers one request with these bytes and closes.
async fn answering(answer: String) -> (tokio::task::JoinHandle<(String, Vec<u8>)>, String) {
    let (listener, url) = listen().await;
    let task = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let request = read_request(&mut socket).await;
        socket.write_all(answer.as_bytes()).await.unwrap();
        request
    });
    (task, url)
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req-7\r\nconnection: close\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn a_call_sends_its_exact_length_and_its_key_and_gets_the_answer() {
    let (server, url) = answering(ok(&format!("{CHUNK}{END}"))).await;
    let spec = spec(&url);
    let (reply, _) = make(&spec).await.unwrap();
    assert_eq!(
        (reply.content, reply.stop_reason),
        (vec![Block::text("hi")], StopReason::EndTurn)
    );
    assert_eq!(reply.request_id.as_deref(), Some("req-7"));
    let (head, sent) = server.await.unwrap();
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("\r\nauthorization: bearer sk-test-key"), "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
    assert_eq!(sent, body(&spec).to_bytes());
}

#[tokio::test]
async fn i8_an_error_that_echoes_the_key_is_told_without_it() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-test-key","code":"invalid_api_key"}}"#;
    let answer = format!(
        "HTTP/1.1 401 Unauthorized\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (_server, url) = answering(answer).await;
    let error = make(&spec(&url)).await.unwrap_err();
    let message = "HTTP 401: Incorrect API key provided: [redacted]; credential main of provider scripted comes from TEST_API_KEY";
    assert_eq!(
        error,
        ModelError {
            status: Some(401),
            ..ModelError::new(FailureClass::Auth, message)
        }
    );
}

#[tokio::test]
async fn a_wait_that_the_server_asks_for_is_passed_on() {
    let answer = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n".to_owned();
    let (_server, url) = answering(answer).await;
    let error = make(&spec(&url)).await.unwrap_err();
    assert_eq!(
        (error.class, error.retry_after_ms),
        (FailureClass::RateLimited, Some(3_000))
    );
}

fn answer(kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

const WHOLE: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;

/// The result of a call to a server with this answer.
async fn told(answer: String, stream: bool) -> Result<Vec<Block>, ModelError> {
    let (_server, url) = answering(answer).await;
    let spec = ModelSpec { stream, ..spec(&url) };
    make(&spec).await.map(|(reply, _)| reply.content)
}

#[tokio::test]
async fn an_answer_in_one_piece_is_an_answer_whether_asked_for_or_not() {
    let hi = Ok(vec![Block::text("hi")]);
    assert_eq!(
        told(answer("application/json; charset=utf-8", WHOLE), true).await,
        hi
    );
    assert_eq!(
        told(answer("text/plain", &format!("\n\n{WHOLE}")), false).await,
        hi
    );
    let stream = format!("{CHUNK}{END}");
    assert_eq!(told(answer("text/event-stream", &stream), false).await, hi);
    assert_eq!(
        told(answer("application/json", &stream), true).await,
        hi,
        "it lies"
    );
}

#[tokio::test]
async fn a_success_that_is_no_answer_is_a_failure() {
    let class = async |body: &str| {
        told(answer("application/json", body), true)
            .await
            .unwrap_err()
            .class
    };
    let overloaded = r#"{"error":{"message":"busy","type":"overloaded_error"}}"#;
    assert_eq!(class(overloaded).await, FailureClass::Overloaded);
    assert_eq!(class("{}").await, FailureClass::Transient);
    assert_eq!(class("").await, FailureClass::Transient);
    assert_eq!(class(&"[".repeat(100_000)).await, FailureClass::Transient);
}

#[tokio::test]
async fn a_web_page_is_told_as_one() {
    let page = "<html><head><title>502 Bad gateway</title></head><body>\n<p>Try later.</p></body></html>";
    let message = "the server sent a web page instead of an answer: 502 Bad gateway Try later.";
    for (kind, stream) in [
        ("text/html; charset=utf-8", true),
        ("text/html", false),
        ("text/event-stream", true),
        ("application/json", true),
    ] {
        let error = told(answer(kind, page), stream).await.unwrap_err();
        assert_eq!(error.class, FailureClass::Transient, "{kind}");
        let begins = format!("{message} (POST http://127.0.0.1:");
        assert!(error.message.starts_with(&begins), "{kind}: {}", error.message);
    }
}

#[tokio::test]
async fn what_an_answer_is_counts_for_more_than_what_it_is_called() {
    let hi = Ok(vec![Block::text("hi")]);
    assert_eq!(told(answer("text/event-stream", WHOLE), true).await, hi);
    assert_eq!(
        told(answer("text/html", &format!("{CHUNK}{END}")), true).await,
        hi
    );
    let quota = r#" {"error":{"message":"pay","code":"insufficient_quota"}}"#;
    let error = told(answer("text/event-stream", quota), true).await.unwrap_err();
    assert_eq!(error.class, FailureClass::QuotaExhausted);
}

#[tokio::test]
async fn a_packed_answer_is_refused_unread() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\ncontent-length: 9999999999\r\n\r\n";
    let error = told(answer.to_owned(), true).await;
    let message = "the answer is compressed (gzip), but agentd did not request that";
    assert_eq!(error, Err(ModelError::transient(message)));
    let answer =
        "HTTP/1.1 503 Busy\r\ncontent-encoding: gzip\r\ncontent-length: 9999999999\r\n\r\n".to_owned();
    assert_eq!(
        told(answer, true).await.unwrap_err().class,
        FailureClass::Overloaded
    );
}

#[tokio::test]
async fn an_answer_in_one_piece_has_a_longest_length() {
    let piece = |length: usize| {
        let piece = Bytes::from(vec![b' '; 1 << 20]);
        stream::iter(vec![piece; length >> 20]).map(Ok).boxed()
    };
    let limit = reading::MAX_WHOLE;
    let mut pace = Pace::start(Deadlines::default());
    assert_eq!(
        collect(piece(limit), &mut pace).await.map(|body| body.len()),
        Ok(limit)
    );
    let error = ModelError::transient("the answer is one piece of more than 16 MiB");
    assert_eq!(collect(piece(limit + (1 << 20)), &mut pace).await, Err(error));
}

#[tokio::test]
async fn lines_are_lines_whatever_the_server_calls_them() {
    let lines =
        "{\"message\":{\"content\":\"h\"},\"done\":false}\n{\"message\":{\"content\":\"i\"},\"done\":true}\n";
    for (kind, stream) in [
        ("application/x-ndjson", true),
        ("application/json", true),
        ("application/x-ndjson", false),
    ] {
        let (server, url) = answering(answer(kind, lines)).await;
        let spec = ModelSpec {
            dialect: Dialect::Ollama,
            stream,
            ..spec(&url)
        };
        let (reply, _) = make(&spec).await.unwrap();
        assert_eq!(reply.content, [Block::text("hi")], "{kind}");
        let (head, _) = server.await.unwrap();
        assert!(head.starts_with("post /api/chat http/1.1\r\n"), "{head}");
    }
}

#[tokio::test]
async fn a_completion_asks_for_its_prompt_first() {
    let (listener, url) = listen().await;
    let server = tokio::spawn(async move {
        let mut heads = Vec::new();
        let frame = r#"data: {"content":"hi","stop":true,"stop_type":"eos"}"#;
        for body in [r#"{"prompt":"<user>hello"}"#, &format!("{frame}\n\n")] {
            let (mut socket, _) = listener.accept().await.unwrap();
            let (head, sent) = read_request(&mut socket).await;
            let line = head.lines().next().unwrap_or_default().to_owned();
            let sent: serde_json::Value = serde_json::from_slice(&sent).unwrap();
            heads.push((line, sent.get("prompt").cloned()));
            let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}");
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
        heads
    });
    let spec = ModelSpec {
        dialect: Dialect::LlamaCompletion,
        ..spec(&url)
    };
    let (reply, _) = make(&spec).await.unwrap();
    assert_eq!(reply.content, [Block::text("hi")]);
    let expected = [
        ("post /apply-template http/1.1".to_owned(), None),
        ("post /completion http/1.1".to_owned(), Some("<user>hello".into())),
    ];
    assert_eq!(server.await.unwrap(), expected);
}

#[tokio::test]
async fn a_completion_whose_prompt_is_refused_is_not_asked_for() {
    let body = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
    let answer = format!(
        "HTTP/1.1 503 Busy\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (_server, url) = answering(answer).await;
    let spec = ModelSpec {
        dialect: Dialect::LlamaCompletion,
        ..spec(&url)
    };
    assert_eq!(make(&spec).await.unwrap_err().class, FailureClass::Overloaded);
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_transient() {
    let (_server, url) = answering(ok(CHUNK)).await;
    let error = make(&spec(&url)).await.unwrap_err();
    assert_eq!(
        error,
        ModelError::transient("the stream ended before the end of the answer")
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_transient() {
    let (listener, url) = listen().await;
    drop(listener);
    let error = make(&spec(&url)).await.unwrap_err();
    assert_eq!((error.class, error.status), (FailureClass::Transient, None));
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    let unsent = format!("could not send the request to {address}: ");
    assert!(error.message.starts_with(&unsent), "{}", error.message);
}

#[tokio::test]
async fn a_dropped_call_drops_its_connection() {
    let (listener, url) = listen().await;
    let spec = spec(&url);
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(ok(CHUNK).as_bytes()).await.unwrap();
        socket
    };
    let mut socket = {
        let call = std::pin::pin!(make(&spec));
        tokio::select! {
            answer = call => panic!("{answer:?}"),
            socket = server => socket,
        }
    };
    let end = socket.read(&mut [0; 16]).await;
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
}

/// Reads a stream that yields each text after its delay, and then ends or stays silent.
async fn paced(parts: &[(u64, &'static str)], ends: bool) -> (Result<ModelReply, ModelError>, u64) {
    let spec = spec("http://unused");
    let deadlines = Deadlines {
        connect: Duration::from_secs(1),
        first_byte: Duration::from_secs(120),
        idle: Duration::from_secs(60),
        total: Duration::from_secs(1_800),
    };
    let said = stream::iter(parts.to_vec()).then(|(wait, text)| async move {
        sleep(Duration::from_secs(wait)).await;
        Ok::<_, reqwest::Error>(Bytes::from_static(text.as_bytes()))
    });
    let rest = if ends {
        stream::empty().boxed()
    } else {
        stream::pending().boxed()
    };
    let started = Instant::now();
    let mut pace = Pace::start(deadlines);
    let decoder = Decoder::new(&spec, &[]).unwrap();
    let answer = read_answer(
        said.chain(rest).boxed(),
        (decoder, Head::default()),
        &mut pace,
        &mut Collected::default(),
        &mut Usage::default(),
    )
    .await;
    (answer.map(|(reply, _)| reply), started.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn silence_before_the_first_byte_has_its_deadline() {
    let (answer, seconds) = paced(&[], false).await;
    assert_eq!(
        (answer, seconds),
        (Err(ModelError::transient("no answer within 120000 ms")), 120)
    );
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_has_its_deadline() {
    let (answer, seconds) = paced(&[(100, CHUNK), (50, CHUNK)], false).await;
    let stalled = ModelError::transient("the stream stalled: no new data within 60000 ms");
    assert_eq!((answer, seconds), (Err(stalled), 210));
}

#[tokio::test(start_paused = true)]
async fn comments_stretch_the_wait_but_not_for_ever() {
    let mut parts = vec![(1, CHUNK)];
    parts.extend([(50, ": keep-alive\n\n"); 20]);
    let (answer, seconds) = paced(&parts, false).await;
    let stalled = ModelError::transient("the stream stalled: no new data within 60000 ms");
    assert_eq!((answer, seconds), (Err(stalled), 301));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_ends_is_given_up() {
    let (answer, seconds) = paced(&[(30, CHUNK); 100], false).await;
    assert_eq!(
        (answer, seconds),
        (
            Err(ModelError::transient("no complete answer within 1800000 ms")),
            1_800
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_complete_answer_does_not_wait_for_the_connection_to_close() {
    let (answer, seconds) = paced(&[(5, CHUNK), (5, END)], false).await;
    assert_eq!(
        (answer.map(|reply| reply.content), seconds),
        (Ok(vec![Block::text("hi")]), 10)
    );
    let (answer, _) = paced(&[(5, CHUNK), (5, END)], true).await;
    assert!(answer.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_never_takes_a_piece_does_not_hold_the_call_for_ever() {
    struct Stuck;
    impl Sink for Stuck {
        async fn send(&mut self, _: ModelEvent) {
            std::future::pending::<()>().await;
        }
    }
    let spec = spec("http://unused");
    let mut pace = Pace::start(Deadlines {
        total: Duration::from_secs(9),
        ..Deadlines::default()
    });
    let decoder = Decoder::new(&spec, &[]).unwrap();
    let bytes = stream::iter([Ok(Bytes::from_static(CHUNK.as_bytes()))]).boxed();
    let answer = read_answer(
        bytes,
        (decoder, Head::default()),
        &mut pace,
        &mut Stuck,
        &mut Usage::default(),
    )
    .await;
    assert_eq!(
        answer.map(|_| ()),
        Err(ModelError::transient("no complete answer within 9000 ms"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_one_piece_is_waited_for_longer_but_not_for_ever() {
    let deadlines = Deadlines {
        first_byte: Duration::from_secs(120),
        idle: Duration::from_secs(60),
        ..Deadlines::default()
    };
    let blank = stream::iter([(); 100]).then(|()| async {
        sleep(Duration::from_secs(300)).await;
        Ok::<_, reqwest::Error>(Bytes::from_static(b"\n"))
    });
    let started = Instant::now();
    let mut pace = Pace::start(deadlines).patient();
    let silent = collect(stream::pending().boxed(), &mut pace).await;
    let message = "no answer within 600000 ms";
    assert_eq!(
        (silent, started.elapsed().as_secs()),
        (Err(ModelError::transient(message)), 600)
    );
    let started = Instant::now();
    let mut pace = Pace::start(deadlines).patient();
    let blank = collect(blank.boxed(), &mut pace).await;
    let message = "no complete answer within 1800000 ms";
    assert_eq!(
        (blank, started.elapsed().as_secs()),
        (Err(ModelError::transient(message)), 1_800)
    );
}

#[tokio::test(start_paused = true)]
async fn what_follows_the_end_without_end_does_not_void_the_answer() {
    let tail = stream::repeat(()).then(|()| async {
        sleep(Duration::from_millis(1)).await;
        Ok::<_, reqwest::Error>(Bytes::from_static(b": still here\n\n"))
    });
    let said = stream::iter([Ok(Bytes::from(format!("{CHUNK}{END}")))]);
    let spec = spec("http://unused");
    let mut pace = Pace::start(Deadlines::default());
    let decoder = Decoder::new(&spec, &[]).unwrap();
    let answer = read_answer(
        said.chain(tail).boxed(),
        (decoder, Head::default()),
        &mut pace,
        &mut Collected::default(),
        &mut Usage::default(),
    )
    .await;
    assert_eq!(
        answer.map(|(reply, _)| reply.content),
        Ok(vec![Block::text("hi")])
    );
}

#[tokio::test]
async fn what_a_broken_answer_had_cost_is_told() {
    let start =
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":9,"output_tokens":1}}}"#;
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let counted = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#;
    for (dialect, frames) in [
        (Dialect::Anthropic, vec![start, error]),
        (Dialect::OpenaiChat, vec![counted]),
        (Dialect::OpenaiChat, vec!["{\"choices\":[]}"]),
    ] {
        let body: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
        let (_server, url) = answering(answer("text/event-stream", &body)).await;
        let spec = ModelSpec {
            dialect,
            ..spec(&url)
        };
        let called = called(&spec).await;
        assert!(called.answer.is_err());
        let expected = (!frames.contains(&"{\"choices\":[]}")).then_some((9, 1));
        assert_eq!(called.spent.map(|usage| (usage.input, usage.output)), expected);
    }
}

#[tokio::test]
async fn a_deployment_at_azure_is_called_with_its_query_and_its_key_header() {
    let body = format!("{CHUNK}{END}");
    for (dialect, service) in [
        (Dialect::OpenaiChat, "chat/completions"),
        (Dialect::OpenaiResponses, "responses"),
    ] {
        let (server, url) = answering(answer("text/event-stream", &body)).await;
        let url = url.replace("/v1", "/openai/deployments/my-gpt?api-version=2024-10-21");
        let mut spec = ModelSpec {
            dialect,
            ..spec(&url)
        };
        spec.compat.api_key_header = true;
        let called = called(&spec).await;
        assert_eq!(
            called.answer.is_ok(),
            dialect == Dialect::OpenaiChat,
            "the answer is of this dialect"
        );
        let (head, _) = server.await.unwrap();
        let first = format!("post /openai/deployments/my-gpt/{service}?api-version=2024-10-21 http/1.1");
        assert_eq!(head.lines().next(), Some(first.as_str()));
        assert!(head.contains("\r\napi-key: sk-test-key\r\n"), "{head}");
        assert!(!head.contains("authorization"), "{head}");
    }
}

#[test]
fn azure_is_known_by_its_host() {
    use agentd_settings::CompatConfig;
    let of =
        |url: &str, config: &CompatConfig| crate::spec::Compat::of(Dialect::OpenaiChat, url, "m", config);
    let (plain, url) = (CompatConfig::default(), "https://me.openai.azure.com/openai/v1");
    let azure = of(url, &plain);
    assert!(azure.api_key_header && azure.max_completion_tokens && !azure.replay_reasoning);
    assert!(!of("https://llm.example.org/v1", &plain).api_key_header);
    let token = CompatConfig {
        api_key_header: Some(false),
        ..plain
    };
    assert!(!of(url, &token).api_key_header);
}

/// The error of a call that is answered like this.
async fn refused(answer: &str) -> ModelError {
    let (_server, url) = answering(answer.to_owned()).await;
    make(&spec(&format!("{url}?key=secret"))).await.unwrap_err()
}

#[tokio::test]
async fn a_text_for_people_with_status_200_is_quoted_and_the_address_named() {
    for kind in ["text/plain", "text/html; charset=utf-8"] {
        let text = "Ollama is running";
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        let error = refused(&format!("{head}{text}")).await;
        assert_eq!(error.class, FailureClass::Transient);
        let begins = "the server sent a text instead of an answer: Ollama is running (POST http://127.0.0.1:";
        assert!(error.message.starts_with(begins), "{}", error.message);
        assert!(!error.message.contains("secret"), "{}", error.message);
    }
}

#[tokio::test]
async fn an_answer_that_is_labelled_as_text_is_read() {
    let (_server, url) = answering(ok(CHUNK).replace("text/event-stream", "text/plain")).await;
    let error = make(&spec(&url)).await.unwrap_err();
    assert!(error.message.contains("the stream ended"), "{}", error.message);
}

#[tokio::test]
async fn an_address_that_does_not_exist_is_named_without_its_secrets() {
    let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nnot found";
    let error = refused(answer).await;
    assert_eq!(error.class, FailureClass::InvalidRequest);
    assert!(
        error
            .message
            .starts_with("HTTP 404: not found (POST http://127.0.0.1:"),
        "{}",
        error.message
    );
    assert!(!error.message.contains("secret"), "{}", error.message);
}

#[test]
fn an_address_is_shown_without_its_secrets() {
    for (url, expected) in [
        (
            "https://me:pw@a.example/v1/x?key=k#t",
            Some("https://a.example/v1/x"),
        ),
        (
            "http://[::1]:8080/v1/chat/completions",
            Some("http://[::1]:8080/v1/chat/completions"),
        ),
        ("no address", None),
    ] {
        assert_eq!(shown(url).as_deref(), expected);
    }
}

/// A resolver that knows no name.
struct Nowhere;

impl reqwest::dns::Resolve for Nowhere {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let error = std::io::Error::new(std::io::ErrorKind::NotFound, "no such name");
        Box::pin(async move { Err(error.into()) })
    }
}

#[tokio::test]
async fn a_name_without_an_address_is_named_once() {
    let client = Client::builder()
        .no_proxy()
        .dns_resolver(Arc::new(Nowhere))
        .build()
        .unwrap();
    let spec = spec("http://no-such-host.invalid/v1");
    let request = Request {
        spec: &spec,
        credential: None,
        tools: &[],
        body: body(&spec),
        messages: &[],
        attempt: 1,
    };
    let error = call(&client, request, &mut Collected::default())
        .await
        .answer
        .unwrap_err();
    assert_eq!(error.advice, Some(Advice::NoSuchHost));
    assert_eq!(error.class, FailureClass::Transient);
    assert!(
        error.message.starts_with("no address for no-such-host.invalid: "),
        "{}",
        error.message
    );
    assert_eq!(
        error.message.matches("no-such-host").count(),
        1,
        "{}",
        error.message
    );
}
