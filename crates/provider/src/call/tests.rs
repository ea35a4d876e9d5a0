use super::*;
use crate::body::{EncodedHistory, Params, Prompt, encode_prefix, encode_suffix};
use crate::http::http_client;
use crate::script::Script;
use crate::secret::Secret;
use crate::spec::{Credential, Deadlines};
use agentd_protocol::{Block, Role, StopReason};
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
        encode_prefix(spec, &Prompt { system: "s" }, &[], &params),
        &history,
        encode_suffix(spec, &[], &params),
    )
}

async fn make(spec: &ModelSpec) -> Result<(ModelReply, Latency), ModelError> {
    let client = http_client(spec.deadlines.connect).unwrap();
    let request = Request {
        spec,
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

/// Reads one request: its head, and as much body as it announces.
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
    let message = "HTTP 401: Incorrect API key provided: [redacted]; credential main of provider scripted was found in TEST_API_KEY";
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

#[tokio::test]
async fn a_success_without_a_stream_is_an_error() {
    let answer = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let (_server, url) = answering(answer(
        r#"{"error":{"message":"busy","type":"overloaded_error"}}"#,
    ))
    .await;
    assert_eq!(
        make(&spec(&url)).await.unwrap_err().class,
        FailureClass::Overloaded
    );
    let (_server, url) = answering(answer("{}")).await;
    assert_eq!(
        make(&spec(&url)).await.unwrap_err().class,
        FailureClass::InvalidRequest
    );
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
    assert!(
        error.message.starts_with("the request could not be sent: "),
        "{}",
        error.message
    );
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

/// Reads a stream that gives each text after its wait, and then nothing more.
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
    let decoder = Decoder::new(&spec).unwrap();
    let answer = read_answer(
        said.chain(rest).boxed(),
        decoder,
        &mut pace,
        &mut Collected::default(),
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
    let stalled = ModelError::transient("the stream stalled: nothing new within 60000 ms");
    assert_eq!((answer, seconds), (Err(stalled), 210));
}

#[tokio::test(start_paused = true)]
async fn comments_stretch_the_wait_but_not_for_ever() {
    let mut parts = vec![(1, CHUNK)];
    parts.extend([(50, ": keep-alive\n\n"); 20]);
    let (answer, seconds) = paced(&parts, false).await;
    let stalled = ModelError::transient("the stream stalled: nothing new within 60000 ms");
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
    let decoder = Decoder::new(&spec).unwrap();
    let bytes = stream::iter([Ok(Bytes::from_static(CHUNK.as_bytes()))]).boxed();
    let answer = read_answer(bytes, decoder, &mut pace, &mut Stuck).await;
    assert_eq!(
        answer.map(|_| ()),
        Err(ModelError::transient("no complete answer within 9000 ms"))
    );
}
