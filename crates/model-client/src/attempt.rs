//! One attempt: wait for a permit, call, pass the pieces on, send the result.

use crate::call::CallStart;
use crate::merge::Merger;
use agentd_actor_kit::{CallEvent, CallOutcome, CallPermit, Credit, Done, ModelMsg, SessionMsg};
use agentd_protocol::{CallId, FailureClass, Latency};
use agentd_provider::{ModelError, ModelEvent, ModelReply, Request, Sink};
use agentd_turn::{ModelAnswer, ModelFailure};
use ractor::ActorRef;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Deltas that may be in the session's mailbox at the same time.
const CREDITS: usize = 8;
/// Pieces between the stream and the merger.
const PIECES: usize = 64;
/// A permit that comes sooner than this was not waited for.
const NOTICEABLE: Duration = Duration::from_millis(20);
/// How often, and after which pause, a client that is down is asked again.
const CLIENT_TRIES: u32 = 50;
const CLIENT_PAUSE: Duration = Duration::from_millis(100);

type Answer = Result<(ModelReply, Latency), ModelError>;

/// Who makes the call itself: the provider's HTTP client, or a test's puppet.
pub(crate) trait Caller: Send + Sync + 'static {
    fn call(&self, request: Request<'_>, sink: &mut Pipe) -> impl Future<Output = Answer> + Send;
}

/// The real one.
#[derive(Debug)]
pub(crate) struct Http(pub(crate) reqwest::Client);

impl Caller for Http {
    async fn call(&self, request: Request<'_>, sink: &mut Pipe) -> Answer {
        agentd_provider::call(&self.0, request, sink).await
    }
}

/// A bounded pipe from the stream to the merger.
#[derive(Debug)]
pub(crate) struct Pipe(mpsc::Sender<ModelEvent>);

impl Sink for Pipe {
    async fn send(&mut self, event: ModelEvent) {
        // The other end lives in the same task, as long as this one.
        let _ = self.0.send(event).await;
    }
}

/// The way back to the session.
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

    /// Sends all that was merged, each delta when there is a credit for it.
    async fn flush(&self, merger: &mut Merger) {
        while let Some(delta) = merger.pop() {
            let credit = Arc::clone(&self.credits).acquire_owned().await.ok();
            self.send(CallEvent::Delta(delta, Credit(credit)));
        }
    }
}

/// Makes the attempt. The result is the last message, whatever happens.
pub(crate) async fn run<C: Caller>(caller: &C, start: CallStart) {
    let credits = Arc::new(Semaphore::new(CREDITS));
    let news = News {
        to: start.to.clone(),
        call: start.call,
        attempt: start.attempt,
        credits,
    };
    let Some(mut permit) = admission(&start, &news).await else {
        let message = "the model client is not running; it is being restarted".to_owned();
        let failure = ModelFailure {
            class: FailureClass::Transient,
            message,
            status: None,
            retry_after_ms: None,
        };
        news.send(CallEvent::Failed(failure));
        return;
    };
    news.send(CallEvent::Granted);
    let answer = stream(caller, &start, &news).await;
    permit.outcome = match &answer {
        Ok(_) => CallOutcome::Answered,
        Err(error) => CallOutcome::Failed {
            class: error.class,
            retry_after_ms: error.retry_after_ms,
        },
    };
    // The permit goes first, so that a retry of this very session finds the pause that it caused.
    drop(permit);
    news.send(result(answer));
}

/// Waits for a permit. There is no deadline: a wait ends by a permit or by a kill, and is shown as such.
async fn admission(start: &CallStart, news: &News) -> Option<CallPermit> {
    for _ in 0..CLIENT_TRIES {
        let (done, mut permit) = Done::channel();
        start.client.cast(ModelMsg::Acquire {
            session: start.session,
            done,
        });
        if let Some(permit) = granted(&mut permit, news).await {
            return Some(permit);
        }
        // The client went down with the request; the root starts it again.
        sleep(CLIENT_PAUSE).await;
    }
    None
}

async fn granted(permit: &mut oneshot::Receiver<CallPermit>, news: &News) -> Option<CallPermit> {
    if let Ok(answer) = timeout(NOTICEABLE, &mut *permit).await {
        return answer.ok();
    }
    news.send(CallEvent::Waiting);
    permit.await.ok()
}

/// Calls, and passes the pieces on as they come.
async fn stream<C: Caller>(caller: &C, start: &CallStart, news: &News) -> Answer {
    let (tx, mut pieces) = mpsc::channel(PIECES);
    let mut pipe = Pipe(tx);
    let mut merger = Merger::new(start.call, start.attempt);
    let request = Request {
        spec: &start.spec,
        body: start.body.clone(),
        messages: &start.messages,
        attempt: start.attempt,
    };
    let mut calling = std::pin::pin!(caller.call(request, &mut pipe));
    let answer = loop {
        tokio::select! {
            biased;
            Some(piece) = pieces.recv() => merger.push(piece, Instant::now()),
            () = until(merger.due()) => news.flush(&mut merger).await,
            answer = &mut calling => break answer,
        }
        if merger.is_full() {
            news.flush(&mut merger).await;
        }
    };
    while let Ok(piece) = pieces.try_recv() {
        merger.push(piece, Instant::now());
    }
    news.flush(&mut merger).await;
    answer
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

fn result(answer: Answer) -> CallEvent {
    match answer {
        Ok((reply, latency)) => CallEvent::Answered(Box::new(ModelAnswer {
            content: reply.content,
            stop_reason: reply.stop_reason,
            usage: reply.usage,
            cost_usd: reply.cost_usd,
            latency,
        })),
        Err(error) => CallEvent::Failed(ModelFailure {
            class: error.class,
            message: error.message,
            status: error.status,
            retry_after_ms: error.retry_after_ms,
        }),
    }
}

#[cfg(test)]
mod tests;
