//! One attempt: acquires a permit, makes the call, forwards the deltas, and sends the result.

use crate::bucket::aged;
use crate::call::CallStart;
use crate::merge::Merger;
use agentd_actor_kit::{
    Admitted, CallEvent, CallOutcome, CallPermit, Credit, Done, ModelMsg, Outlook, QueuePosition, SessionMsg,
};
use agentd_fault_points as fault;
use agentd_protocol::{Advice, CallId, FailureClass, Latency, Usage};
use agentd_provider::{Called, ModelError, ModelEvent, ModelReply, Rates, Request, Sink};
use agentd_turn::{ModelAnswer, ModelFailure};
use ractor::ActorRef;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The most deltas in the session's mailbox at the same time.
const CREDITS: usize = 8;
/// The most pieces between the stream and the merger.
const PIECES: usize = 64;
/// If the permit arrives sooner than this, no waiting is reported.
const NOTICEABLE: Duration = Duration::from_millis(20);
/// How often, and at which interval, an attempt asks a model client that is down.
const CLIENT_TRIES: u32 = 50;
const CLIENT_PAUSE: Duration = Duration::from_millis(100);
/// How often a waiting call asks for its position: more often as its turn approaches.
const PLACE_EVERY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));
/// The time limit of a position request.
const PLACE_WITHIN: Duration = Duration::from_secs(5);
/// The longest time that an answer waits to be recorded.
const RECORD_WITHIN: Duration = Duration::from_secs(10);

type AttemptResult = Result<(ModelReply, Latency), ModelError>;

/// Makes the call itself: the provider's HTTP client, or a fake in tests.
pub(crate) trait Caller: Send + Sync + 'static {
    fn call(&self, request: Request<'_>, sink: &mut Pipe) -> impl Future<Output = Called> + Send;
}

/// The production caller.
#[derive(Debug)]
pub(crate) struct Http(pub(crate) reqwest::Client);

impl Caller for Http {
    async fn call(&self, request: Request<'_>, sink: &mut Pipe) -> Called {
        agentd_provider::call(&self.0, request, sink).await
    }
}

/// A bounded pipe from the stream to the merger.
#[derive(Debug)]
pub(crate) struct Pipe(mpsc::Sender<ModelEvent>);

impl Sink for Pipe {
    async fn send(&mut self, event: ModelEvent) {
        // Cannot fail: the receiver belongs to the same task and is dropped later.
        let _ = self.0.send(event).await;
    }
}

/// Sends messages to the session.
#[derive(Debug)]
struct News {
    to: ActorRef<SessionMsg>,
    call: CallId,
    attempt: u32,
    credits: Arc<Semaphore>,
}

impl News {
    fn send(&self, event: CallEvent) {
        let _ = self.to.cast(SessionMsg::Model {
            call: self.call,
            attempt: self.attempt,
            event,
        });
    }

    /// Sends all merged deltas, waiting for a credit before each.
    async fn flush(&self, merger: &mut Merger) {
        while let Some(delta) = merger.pop() {
            let credit = Arc::clone(&self.credits).acquire_owned().await.ok();
            self.send(CallEvent::Delta(delta, Credit(credit)));
        }
    }
}

/// Makes the attempt. The result is always the last message.
pub(crate) async fn run<C: Caller>(caller: &C, start: CallStart) {
    let credits = Arc::new(Semaphore::new(CREDITS));
    let news = News {
        to: start.to.clone(),
        call: start.call,
        attempt: start.attempt,
        credits,
    };
    let mut permit = match admission(&start, &news).await {
        Some(Admitted::Granted(permit)) => permit,
        Some(Admitted::Refused(refusal)) => {
            let failure = ModelFailure {
                retry_after_ms: Some(refusal.retry_after_ms),
                refused: true,
                ..ModelFailure::new(refusal.class, refusal.message)
            };
            news.send(CallEvent::Failed(failure));
            return;
        }
        None => {
            let message = "the model client is not running; it is being restarted";
            let failure = ModelFailure::new(FailureClass::Transient, message);
            news.send(CallEvent::Failed(failure));
            return;
        }
    };
    let credential = permit.credential().map(str::to_owned);
    news.send(CallEvent::Granted {
        window: permit.window(),
    });
    let called = stream(caller, &start, &news, &mut permit).await;
    // The permit is released first, so that a retry by this session sees the effects of this attempt.
    let outlook = permit.give_back(outcome(&called), rates(&called)).await;
    record(&start, &called).await;
    let spent = called.spent.map(|usage| (usage, start.spec.cost(&usage)));
    let answer = struck(fault::MODEL_ANSWER).map_or(called.answer, |struck| struck.answer);
    news.send(result(answer, spent, credential, outlook));
}

/// Waits for a permit. There is no deadline: only a permit, a refusal or a kill ends the wait, and the session sees it.
async fn admission(start: &CallStart, news: &News) -> Option<Admitted> {
    for _ in 0..CLIENT_TRIES {
        let (done, mut admitted) = Done::channel();
        start.client.cast(ModelMsg::Acquire {
            ask: start.ask.clone(),
            done,
        });
        if let Some(admitted) = waiting(start, &mut admitted, news).await {
            return Some(admitted);
        }
        // The model client failed and lost the request; the root supervisor restarts it.
        sleep(CLIENT_PAUSE).await;
    }
    None
}

/// Waits in the queue and reports the position.
async fn waiting(
    start: &CallStart,
    admitted: &mut oneshot::Receiver<Admitted>,
    news: &News,
) -> Option<Admitted> {
    if let Ok(answer) = timeout(NOTICEABLE, &mut *admitted).await {
        return answer.ok();
    }
    let mut told = None;
    loop {
        let place = tokio::select! {
            biased;
            answer = &mut *admitted => return answer.ok(),
            place = place(start) => place,
        };
        let stands = Some(place.map(|place| (place.position, place.hold)));
        if told != stands {
            told = stands;
            news.send(CallEvent::Waiting(place));
        }
        if let Ok(answer) = timeout(next_look(place), &mut *admitted).await {
            return answer.ok();
        }
    }
}

async fn place(start: &CallStart) -> Option<QueuePosition> {
    let session = start.ask.session;
    let asked = start
        .client
        .call(PLACE_WITHIN, |done| ModelMsg::QueuePosition { session, done });
    asked.await.ok().flatten()
}

fn next_look(place: Option<QueuePosition>) -> Duration {
    let (least, most) = PLACE_EVERY;
    let eta = place.and_then(|place| place.eta_ms).unwrap_or(0);
    Duration::from_millis(eta / 16).clamp(least, most)
}

/// Makes the call, and forwards the deltas as they arrive.
async fn stream<C: Caller>(caller: &C, start: &CallStart, news: &News, permit: &mut CallPermit) -> Called {
    if let Some(struck) = struck(fault::MODEL_START) {
        return struck;
    }
    let (tx, mut pieces) = mpsc::channel(PIECES);
    let mut pipe = Pipe(tx);
    let mut merger = Merger::new(start.call, start.attempt);
    let request = Request {
        spec: &start.spec,
        credential: start.spec.credential(permit.credential()),
        tools: &start.tools,
        body: start.body.clone(),
        messages: &start.messages,
        attempt: start.attempt,
    };
    let mut begun = false;
    let mut calling = std::pin::pin!(caller.call(request, &mut pipe));
    let called = loop {
        tokio::select! {
            biased;
            Some(piece) = pieces.recv() => {
                permit.works();
                if let Some(struck) = first(&mut begun) {
                    return struck;
                }
                merger.push(piece, Instant::now());
            }
            () = until(merger.due()) => news.flush(&mut merger).await,
            called = &mut calling => break called,
        }
        if merger.is_full() {
            news.flush(&mut merger).await;
        }
    };
    // If the answer arrived all at once, its pieces are still queued when the call ends.
    while let Ok(piece) = pieces.try_recv() {
        if let Some(struck) = first(&mut begun) {
            return struck;
        }
        merger.push(piece, Instant::now());
    }
    news.flush(&mut merger).await;
    called
}

/// Passes the fault point at the first delta of an answer.
fn first(begun: &mut bool) -> Option<Called> {
    match std::mem::replace(begun, true) {
        true => None,
        false => struck(fault::MODEL_FIRST),
    }
}

/// If the fault point is armed, fails the call.
fn struck(point: &'static str) -> Option<Called> {
    let injected = fault::point(point).err()?;
    Some(Called {
        answer: Err(ModelError::new(FailureClass::Transient, injected.to_string())),
        rates: Rates::default(),
        spent: None,
    })
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

/// Whether an error says that the model or the address does not exist, and not that a part of the request is refused.
fn is_absent(error: &ModelError) -> bool {
    error.class == FailureClass::InvalidRequest
        && matches!(error.status, Some(404 | 405 | 410))
        && error.advice.is_none()
}

/// The outcome of the call, for the model client.
fn outcome(called: &Called) -> CallOutcome {
    match &called.answer {
        Ok((reply, _)) => CallOutcome::Answered { usage: reply.usage },
        Err(error) => CallOutcome::Failed {
            class: error.class,
            retry_after_ms: error.retry_after_ms,
            window: match error.advice {
                Some(Advice::Window { tokens, .. }) => Some(tokens),
                Some(_) | None => None,
            },
            absent: is_absent(error),
        },
    }
}

/// The server's current limits. They came with the headers of the answer; an error without a status has none.
fn rates(called: &Called) -> Rates {
    match &called.answer {
        Ok((_, latency)) => aged(&called.rates, latency.total_ms.saturating_sub(latency.first_ms)),
        Err(error) if error.status.is_some() => called.rates,
        Err(_) => Rates::default(),
    }
}

/// Appends the answer to the model's recording script, if one is configured.
#[expect(
    clippy::disallowed_methods,
    reason = "the operator chose the file, not a session"
)]
async fn record(start: &CallStart, called: &Called) {
    let (Some(path), Ok((reply, _))) = (start.spec.record.clone(), &called.answer) else {
        return;
    };
    let (messages, reply) = (start.messages.clone(), reply.clone());
    let writing = spawn_blocking(move || agentd_provider::record(&path, &messages, &reply));
    match timeout(RECORD_WITHIN, writing).await {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(error))) => tracing::warn!(%error, "could not record the answer"),
        Ok(Err(error)) => tracing::warn!(%error, "the recording ended early"),
        Err(_) => tracing::warn!("the disk is slow: continuing before the answer is recorded"),
    }
}

fn result(
    answer: AttemptResult,
    spent: Option<(Usage, Option<f64>)>,
    credential: Option<String>,
    outlook: Outlook,
) -> CallEvent {
    match answer {
        Ok((reply, latency)) => CallEvent::Answered(Box::new(ModelAnswer {
            content: reply.content,
            stop_reason: reply.stop_reason,
            usage: reply.usage,
            cost_usd: reply.cost_usd,
            latency,
            credential,
            reading: reply.reading,
        })),
        Err(error) => {
            let closed_ms = outlook.closed_ms.filter(|_| waits_for_credentials(error.class));
            CallEvent::Failed(ModelFailure {
                class: error.class,
                message: error.message,
                status: error.status,
                retry_after_ms: error.retry_after_ms.max(closed_ms),
                credential,
                other_credential: outlook.other,
                refused: false,
                advice: error.advice,
                spent,
            })
        }
    }
}

const fn waits_for_credentials(class: FailureClass) -> bool {
    matches!(
        class,
        FailureClass::RateLimited | FailureClass::QuotaExhausted | FailureClass::Auth
    )
}

#[cfg(test)]
mod tests;
