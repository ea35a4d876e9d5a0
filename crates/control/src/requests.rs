//! The requests in flight and the subscriptions of one connection.

use crate::greeting::IN_FLIGHT;
use agentd_admission::{Hold, Seat};
use agentd_api::{Api, Pushed, read_params};
use agentd_protocol::{DetachParams, Fault, Principal, Subscribed};
use agentd_wire::{Request, ServerFrame};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// The maximum number of subscriptions on one connection.
const SUBSCRIPTIONS: usize = 256;
/// How long requests may continue after the connection was told to end.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Requests and subscriptions; dropping it ends them all.
#[derive(Debug)]
pub(crate) struct Requests {
    shared: Shared,
    room: Arc<Semaphore>,
    running: JoinSet<()>,
}

#[derive(Debug, Clone)]
struct Shared {
    api: Arc<Api>,
    answers: mpsc::Sender<ServerFrame>,
    pushes: mpsc::Sender<Pushed>,
    subscriptions: Arc<Mutex<Subscriptions>>,
    seat: Arc<Seat<i32>>,
    local: bool,
}

#[derive(Debug, Default)]
struct Subscriptions {
    running: BTreeMap<u64, AbortHandle>,
    /// Places reserved for subscriptions that are being started.
    promised: usize,
}

impl Requests {
    pub(crate) fn new(
        api: Arc<Api>,
        answers: mpsc::Sender<ServerFrame>,
        pushes: mpsc::Sender<Pushed>,
        seat: Arc<Seat<i32>>,
        local: bool,
    ) -> Self {
        let shared = Shared {
            api,
            answers,
            pushes,
            subscriptions: Arc::default(),
            seat,
            local,
        };
        Self {
            shared,
            room: Arc::new(Semaphore::new(IN_FLIGHT)),
            running: JoinSet::new(),
        }
    }

    /// Starts a request; waits while too many are in flight. The memory of its frame is held until it is answered.
    pub(crate) async fn start(&mut self, who: &Principal, request: Request, memory: Option<Hold>) {
        while self.running.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&self.room).acquire_owned().await else {
            return;
        };
        let (shared, who, work) = (self.shared.clone(), who.clone(), self.shared.seat.work());
        self.running.spawn(async move {
            shared.carry_out(&who, request).await;
            drop((permit, memory, work));
        });
    }

    /// Waits a limited time for the outstanding answers.
    pub(crate) async fn finish(&mut self) {
        let all = async { while self.running.join_next().await.is_some() {} };
        if timeout(LAST_ANSWERS, all).await.is_err() {
            tracing::debug!(
                left = self.running.len(),
                "cancelled requests because their connection ended"
            );
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.running.abort_all();
        self.shared.end_all();
    }
}

impl Shared {
    async fn carry_out(&self, who: &Principal, Request { id, method, params }: Request) {
        let work = async {
            match method.as_str() {
                "session.attach" => self.subscribe(id, self.api.attach(who, params)).await,
                "fleet.watch" => self.subscribe(id, self.api.watch(who, params)).await,
                "session.detach" => self.detach(params).map(Some),
                "approval.decide" | "rule.remove" if self.answers_refused() => Err(local_approvals_off()),
                _ => self.api.call(who, &method, params).await.map(Some),
            }
        };
        // A panic must not leave the client waiting for an answer that never comes.
        let outcome = AssertUnwindSafe(work).catch_unwind().await;
        let frame = match outcome.unwrap_or_else(|_| Err(panicked(&method))) {
            Ok(Some(ok)) => ServerFrame::Ok { id, ok },
            Ok(None) => return,
            Err(fault) => ServerFrame::Fault { id: Some(id), fault },
        };
        // If the writer is gone, no one can receive the answer.
        let _ = self.answers.send(frame).await;
    }

    /// Whether the settings refuse answers to approvals from here: from the Unix socket, whose clients show no token.
    fn answers_refused(&self) -> bool {
        self.local && !self.api.loaded().settings.control.local_approvals
    }

    /// Sends the answer first, then lets the subscription push.
    async fn subscribe<R: Run>(
        &self,
        id: u64,
        started: impl Future<Output = Result<(Subscribed, R), Fault>>,
    ) -> Result<Option<Value>, Fault> {
        let promise = self.promise()?;
        let (subscribed, running) = started.await?;
        let sub = subscribed.sub;
        let ok = serde_json::to_value(subscribed).map_err(|error| {
            Fault::internal("bad_answer", format!("could not encode the answer: {error}"))
        })?;
        if self.answers.send(ServerFrame::Ok { id, ok }).await.is_err() {
            return Ok(None);
        }
        let (pushes, subscriptions) = (self.pushes.clone(), Arc::clone(&self.subscriptions));
        let mut table = self.table();
        let work = self.seat.work();
        let task = tokio::spawn(async move {
            running.run(pushes).await;
            drop(work);
            lock(&subscriptions).running.remove(&sub);
        });
        table.running.insert(sub, task.abort_handle());
        drop(table);
        drop(promise);
        Ok(None)
    }

    fn promise(&self) -> Result<Promise, Fault> {
        let mut table = self.table();
        if table.running.len() + table.promised >= SUBSCRIPTIONS {
            return Err(Fault::limit(
                "too_many_subscriptions",
                format!("a connection can have at most {SUBSCRIPTIONS} subscriptions"),
            )
            .hint("detach from some, or open another connection"));
        }
        table.promised += 1;
        drop(table);
        Ok(Promise(Arc::clone(&self.subscriptions)))
    }

    fn detach(&self, params: Value) -> Result<Value, Fault> {
        let DetachParams { sub } = read_params(params)?;
        match self.table().running.remove(&sub) {
            Some(task) => {
                task.abort();
                Ok(json!({}))
            }
            None => Err(Fault::not_found(
                "unknown_subscription",
                format!("there is no subscription {sub}"),
            )),
        }
    }

    fn end_all(&self) {
        for task in std::mem::take(&mut self.table().running).into_values() {
            task.abort();
        }
    }

    fn table(&self) -> MutexGuard<'_, Subscriptions> {
        lock(&self.subscriptions)
    }
}

fn local_approvals_off() -> Fault {
    Fault::denied(
        "local_approvals_off",
        "the daemon does not accept answers to approvals from its Unix socket: control.local_approvals is false",
    )
    .hint("to allow them, set control.local_approvals = true in the daemon's configuration and restart it")
}

fn panicked(method: &str) -> Fault {
    Fault::internal("request_panicked", format!("{method} failed inside agentd"))
        .hint("retry with the same key; see the daemon's log for details")
}

fn lock(table: &Mutex<Subscriptions>) -> MutexGuard<'_, Subscriptions> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place reserved for a subscription that is being started.
struct Promise(Arc<Mutex<Subscriptions>>);

impl Drop for Promise {
    fn drop(&mut self) {
        let mut table = lock(&self.0);
        table.promised = table.promised.saturating_sub(1);
    }
}

/// A subscription that pushes until it ends.
trait Run: Send + 'static {
    fn run(self, pushes: mpsc::Sender<Pushed>) -> impl Future<Output = ()> + Send;
}

impl Run for agentd_api::Attachment {
    fn run(self, pushes: mpsc::Sender<Pushed>) -> impl Future<Output = ()> + Send {
        Self::run(self, pushes)
    }
}

impl Run for agentd_api::Watching {
    fn run(self, pushes: mpsc::Sender<Pushed>) -> impl Future<Output = ()> + Send {
        Self::run(self, pushes)
    }
}
