//! Measures the cost of one model attempt without the transport: encoding the conversation and decoding the answer.

use crate::measure::Figures;
use agentd_protocol::{Block, Message, Role};
use agentd_provider::{
    Dialect, EncodedHistory, ModelEvent, ModelSpec, Params, Prompt, Request, RequestBody, Script, Sink,
    ToolDef, call, encode_prefix, encode_suffix, http_client,
};
use anyhow::{Context as _, Result};
use bytes::Bytes;
use reqwest::Client;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The sizes of history, with their names in the figures.
const SIZES: [(&str, usize); 3] = [("2kb", 2_000), ("200kb", 200_000), ("1mb", 1_000_000)];

/// The size of one message of the history.
const MESSAGE: usize = 1_000;

/// The generation of the conversation, which is never compacted here.
const GENERATION: u64 = 1;

/// The server's only answer.
const ANSWER: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"bench\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Done.\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

/// Measures attempts at each size of history, and posts of the same bytes by the HTTP client alone.
pub(crate) async fn run(attempts: u32) -> Result<Figures> {
    let url = serve().await?;
    let client = http_client(Duration::from_secs(10))?;
    let spec = ModelSpec {
        dialect: Dialect::Anthropic,
        base_url: url.clone(),
        ..ModelSpec::scripted("bench", Arc::new(Script::default()))
    };
    let mut figures = Figures::new();
    for (name, size) in SIZES {
        let mut one = Conversation::of(size);
        let started = Instant::now();
        one.encoded.extend(&spec, GENERATION, &one.messages);
        let first = started.elapsed();
        let (mut encoding, mut whole, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..attempts.max(1) {
            let started = Instant::now();
            let body = one.step(&spec);
            encoding.push(started.elapsed());
            let bytes = body.to_bytes();
            let started = Instant::now();
            attempt(&client, &spec, body).await?;
            whole.push(started.elapsed());
            let started = Instant::now();
            post(&client, &url, bytes).await?;
            bare.push(started.elapsed());
        }
        let (encoding, whole, bare) = (median(encoding), median(whole), median(bare));
        let mut tell = |what: &str, time: Duration| {
            figures.insert(format!("attempt.{name}.{what}_us"), json!(time.as_micros()));
        };
        tell("first_encoding", first);
        tell("step_encoding", encoding);
        tell("call", whole);
        tell("bare_post", bare);
        tell("overhead", (encoding + whole).saturating_sub(bare));
    }
    Ok(figures)
}

/// A conversation that grows by one message per step.
struct Conversation {
    messages: Vec<Arc<Message>>,
    encoded: EncodedHistory,
    tools: Vec<ToolDef>,
}

impl Conversation {
    fn of(size: usize) -> Self {
        let tool = |number: u32| ToolDef {
            name: format!("Tool{number}"),
            description: "does what tools do".to_owned(),
            schema: json!({ "type": "object", "properties": { "path": { "type": "string" } } }).into(),
        };
        let mut one = Self {
            messages: Vec::new(),
            encoded: EncodedHistory::new(),
            tools: (0..10).map(tool).collect(),
        };
        for _ in 0..size / MESSAGE {
            one.say();
        }
        one
    }

    fn say(&mut self) {
        let role = if self.messages.len().is_multiple_of(2) {
            Role::User
        } else {
            Role::Assistant
        };
        self.messages.push(Arc::new(Message {
            role,
            content: vec![Block::text("x\n".repeat(MESSAGE / 2))],
        }));
    }

    /// The body of the next step. Encodes only the new messages.
    fn step(&mut self, spec: &ModelSpec) -> RequestBody {
        self.say();
        let params = Params::default();
        let prefix = encode_prefix(spec, &Prompt::of("Be brief."), &self.tools, &params);
        self.encoded.extend(spec, GENERATION, &self.messages);
        RequestBody::new(prefix, &self.encoded, encode_suffix(spec, &self.tools, &params))
    }
}

/// A sink that ignores all events.
struct Nobody;

impl Sink for Nobody {
    async fn send(&mut self, _: ModelEvent) {}
}

async fn attempt(client: &Client, spec: &ModelSpec, body: RequestBody) -> Result<()> {
    let request = Request {
        spec,
        credential: None,
        tools: &[],
        body,
        messages: &[],
        attempt: 1,
    };
    call(client, request, &mut Nobody)
        .await
        .answer
        .context("the attempt failed")?;
    Ok(())
}

async fn post(client: &Client, url: &str, body: Bytes) -> Result<()> {
    let answer = client
        .post(format!("{url}/v1/messages"))
        .body(body)
        .send()
        .await?;
    answer.bytes().await?;
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A server that reads each request, ignores it, and sends the fixed answer.
async fn serve() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // The client reports a broken connection.
                let _ = answer(stream).await;
            });
        }
    });
    Ok(url)
}

async fn answer(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        ANSWER.len()
    );
    let reply = [head.as_bytes(), ANSWER.as_bytes()].concat();
    let mut buffer = vec![0; 256 << 10];
    loop {
        let mut filled = 0;
        let (head, length) = loop {
            let room = buffer
                .get_mut(filled..)
                .context("the head of the request is too long")?;
            let read = stream.read(room).await?;
            if read == 0 {
                return Ok(());
            }
            filled += read;
            if let Some(found) = sizes(buffer.get(..filled).unwrap_or_default()) {
                break found;
            }
        };
        let mut left = (head + length).saturating_sub(filled);
        while left > 0 {
            let read = stream.read(&mut buffer).await?;
            if read == 0 {
                return Ok(());
            }
            left = left.saturating_sub(read);
        }
        stream.write_all(&reply).await?;
    }
}

/// The length of a request's head, once it is complete, and of its body.
fn sizes(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n")?;
    let head = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    Some((end + 4, length.unwrap_or(0)))
}
