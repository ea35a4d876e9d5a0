//! A model server on loopback that streams in every dialect of the product.

mod gaps;
mod manner;
mod plan;
mod reply;
mod speech;
pub mod task;

pub use manner::{Manner, Rates, Trouble, fraction};
pub use plan::{Call, Plan, PlanTool, Step};

use manner::Fate;
use reply::{Body, Saying, plain, stream};
use speech::Speech;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The maximum size of a request.
const MAX_REQUEST: usize = 64 << 20;
/// Bytes per read: below the size that the allocator maps afresh each time.
const READ_BUFFER: usize = 96 << 10;
/// Bytes searched at the end of a request unless bodies are kept: the plan must be within them.
const TAIL: usize = 256 << 10;
/// The maximum number of request buffers kept for reuse.
const MAX_BUFFERS: usize = 8;
/// The path at which the load tool fetches the figures since its last request.
const FIGURES: &str = "/bench/figures";
/// The path at which llama.cpp turns messages into a prompt.
const TEMPLATE: &str = "/apply-template";

/// The server's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Requests whose body was read.
    pub requests: u64,
    /// Answers that are streaming now.
    pub open: u64,
    /// Of these, the answers whose last piece was not sent yet.
    pub unsaid: u64,
    /// The largest number of these so far.
    pub most: u64,
    /// Answers that the client dropped before their end.
    pub dropped: u64,
    /// Answers that were sent completely.
    pub finished: u64,
    /// Answers with an error status.
    pub failed: u64,
}

/// A running model server. It stops when dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    seen: watch::Sender<Seen>,
    failures: Mutex<BTreeMap<String, u32>>,
    bodies: Mutex<Vec<Bytes>>,
    buffers: Mutex<Vec<Vec<u8>>>,
    keep_bodies: bool,
    manner: Manner,
    fate: Fate,
    gaps: gaps::Gaps,
    /// For measurements: does only the work that an answer needs, and records the time between answers.
    cheap: bool,
}

impl ModelServer {
    /// Starts a server on a free port of loopback. With `keep_bodies`, it keeps every request body for inspection, and
    /// a plan may be anywhere in it; otherwise it searches only the last 256 KiB of a request.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn start(keep_bodies: bool) -> std::io::Result<Self> {
        Self::with(keep_bodies, None).await
    }

    /// Starts a server for measurements: with latency and failures, and recording the time between answers.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn measuring(manner: Manner) -> std::io::Result<Self> {
        Self::with(false, Some(manner)).await
    }

    async fn with(keep_bodies: bool, manner: Option<Manner>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            seen: watch::channel(Seen::default()).0,
            failures: Mutex::default(),
            bodies: Mutex::default(),
            buffers: Mutex::default(),
            keep_bodies,
            cheap: manner.is_some(),
            manner: manner.unwrap_or_default(),
            fate: Fate::default(),
            gaps: gaps::Gaps::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The current counts.
    #[must_use]
    pub fn seen(&self) -> Seen {
        *self.shared.seen.borrow()
    }

    /// Waits until the counts satisfy `wanted`.
    pub async fn until(&self, wanted: impl FnMut(&Seen) -> bool) -> Seen {
        let mut watcher = self.shared.seen.subscribe();
        // The sender lives in `self`, so the channel cannot close while we wait.
        watcher
            .wait_for(wanted)
            .await
            .map(|seen| *seen)
            .unwrap_or_default()
    }

    /// The request bodies so far, if `keep_bodies` is set.
    #[must_use]
    pub fn bodies(&self) -> Vec<Bytes> {
        self.shared
            .bodies
            .lock()
            .map(|bodies| bodies.clone())
            .unwrap_or_default()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        // Small frames must not wait for acknowledgements: that would add 40 ms to each step.
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(answer(request, &shared).await) }
            });
            // Clients that disconnect are part of the tests.
            let _ = hyper::server::conn::http1::Builder::new()
                .max_buf_size(READ_BUFFER)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(request: Request<Incoming>, shared: &Arc<Shared>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    match (request.method(), path.as_str()) {
        (&Method::GET, FIGURES) => return plain(StatusCode::OK, None, &shared.figures()),
        (&Method::POST, TEMPLATE) => {}
        (&Method::POST, other) if Speech::of(other).is_some() => {}
        _ => return plain(StatusCode::NOT_FOUND, None, "not here"),
    }
    let mut body = shared.buffer();
    let length = request
        .body()
        .size_hint()
        .exact()
        .and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(0);
    let skipped = if shared.keep_bodies {
        0
    } else {
        length.saturating_sub(TAIL)
    };
    if read(request.into_body(), skipped, &mut body).await.is_none() {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, None, "too large");
    }
    if shared.keep_bodies
        && let Ok(mut bodies) = shared.bodies.lock()
    {
        bodies.push(Bytes::copy_from_slice(&body));
    }
    let Some(speech) = Speech::of(&path) else {
        let prompt = plain(StatusCode::OK, None, &speech::template(&body));
        shared.give_back(body);
        return prompt;
    };
    converse(speech, body, shared)
}

/// Answers a conversation.
fn converse(speech: Speech, body: Vec<u8>, shared: &Arc<Shared>) -> Response<Body> {
    shared.seen.send_modify(|seen| seen.requests += 1);
    let plan = Plan::read(&body);
    let done = plan.done(&body, speech);
    if shared.cheap {
        shared.gaps.request(&plan.key, done);
    }
    let trouble = shared.fate.next(&shared.manner);
    if let Some(Trouble::Status(status)) = trouble {
        shared.seen.send_modify(|seen| seen.failed += 1);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return plain(status, None, &speech.error(status.as_u16()));
    }
    if let Some((status, retry_after)) = shared.failure(&plan) {
        shared.seen.send_modify(|seen| seen.failed += 1);
        return plain(status, retry_after, &speech.error(status.as_u16()));
    }
    let mut step = plan.step(done);
    if step.hang() && shared.again(&plan) {
        step = plan.without_hang().step(done);
    }
    shared.give_back(body);
    let cut = trouble == Some(Trouble::Cut);
    let saying = Saying {
        speech,
        plan,
        done,
        step,
        cut,
    };
    stream(saying, &shared.manner, shared)
}

/// Reads a request into a buffer, without its first `skipped` bytes. `None`: too large, or the client is gone.
async fn read(body: Incoming, mut skipped: usize, into: &mut Vec<u8>) -> Option<()> {
    let mut body = std::pin::pin!(Limited::new(body, MAX_REQUEST));
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            let now = skipped.min(data.len());
            skipped -= now;
            into.extend_from_slice(data.get(now..).unwrap_or_default());
        }
    }
    Some(())
}

impl Shared {
    /// An empty buffer, reused if possible: fresh memory would cost more than reading into it.
    fn buffer(&self) -> Vec<u8> {
        self.buffers
            .lock()
            .ok()
            .and_then(|mut buffers| buffers.pop())
            .unwrap_or_default()
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        if let Ok(mut buffers) = self.buffers.lock()
            && buffers.len() < MAX_BUFFERS
        {
            buffers.push(buffer);
        }
    }

    /// Whether this attempt must fail: with `fail=N` in a plan, the first N attempts of each step do.
    fn failure(&self, plan: &Plan) -> Option<(StatusCode, Option<u64>)> {
        let (times, status, retry_after) = plan.fail?;
        let mut failures = self.failures.lock().ok()?;
        let so_far = failures.entry(plan.key.clone()).or_insert(0);
        *so_far += 1;
        (*so_far <= times).then(|| {
            (
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                retry_after,
            )
        })
    }
}

impl Shared {
    /// The counts, and the gaps since the last call: key, step, microseconds.
    fn figures(&self) -> String {
        let seen = *self.seen.borrow();
        let gaps = self.gaps.take().into_iter();
        let gaps: Vec<Value> = gaps.map(|gap| json!([gap.key, gap.step, gap.micros])).collect();
        json!({
            "requests": seen.requests, "open": seen.open, "dropped": seen.dropped, "finished": seen.finished,
            "failed": seen.failed, "gaps": gaps,
        })
        .to_string()
    }

    /// Whether this plan has already hung the planned number of times.
    fn again(&self, plan: &Plan) -> bool {
        let Some(times) = plan.hangs else { return false };
        let Ok(mut failures) = self.failures.lock() else {
            return false;
        };
        let so_far = failures.entry(format!("hang {}", plan.key)).or_insert(0);
        *so_far += 1;
        *so_far > times
    }
}
