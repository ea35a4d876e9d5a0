//! The connection to one running server.

use crate::call::{Call, OnProgress};
use crate::cleaning::words;
use crate::error::McpError;
use crate::hearing::Hearing;
use crate::launch::Process;
use crate::offer::{MAX_TOOLS, Offers, Page};
use crate::reach::{LAST_WORDS, Reached, Ways, reach, with_causes};
use crate::spec::ServerSpec;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, CustomResult,
    ListToolsRequest, PaginatedRequestParams, PingRequest, ProgressToken, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RunningService, ServiceError};
use serde_json::Value;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How long a server may take to exit after its input is closed.
const GRACE: Duration = Duration::from_secs(1);
/// How long to wait for its processes to end.
const END_WITHIN: Duration = Duration::from_secs(5);
/// The timeout for sending a notification.
const SAY_WITHIN: Duration = Duration::from_secs(2);
/// How long a server may take to answer a ping after a call timed out.
const PROOF_WITHIN: Duration = Duration::from_secs(5);
/// The most pages of a tool list to read.
const MAX_PAGES: usize = 64;

/// Why a connection ended; `None` while it is alive.
type Ended = Arc<watch::Sender<Option<String>>>;

/// A connection to one running server. Dropping it ends the server.
#[derive(Debug)]
pub(crate) struct Connection {
    spec: Arc<ServerSpec>,
    peer: Peer<RoleClient>,
    hearing: Hearing,
    offers: Mutex<(u64, Arc<Offers>)>,
    ended: Ended,
    stop: watch::Sender<bool>,
    keeper: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Connection {
    /// Starts a server, initializes the protocol and lists its tools, all within the start deadline.
    pub(crate) async fn open(
        spec: &Arc<ServerSpec>,
        workdir: &Path,
        ways: &Ways,
        hearing: Hearing,
    ) -> Result<Arc<Self>, McpError> {
        let opening = async {
            let reached = reach(spec, workdir, ways, hearing.clone()).await?;
            let connection = Self::keep(spec, reached, hearing);
            connection.offers().await?;
            Ok(Arc::new(connection))
        };
        let within = spec.limits.start;
        timeout(within, opening).await.unwrap_or_else(|_| {
            Err(McpError::Slow {
                server: spec.name.clone(),
                what: "the initialization",
                within,
            })
        })
    }

    fn keep(spec: &Arc<ServerSpec>, reached: Reached, hearing: Hearing) -> Self {
        let peer = reached.service.peer().clone();
        let ended = Ended::default();
        let (stop, stopped) = watch::channel(false);
        let keeper = tokio::spawn(keep(reached, stopped, Arc::clone(&ended)));
        Self {
            spec: Arc::clone(spec),
            peer,
            hearing,
            // No list has been read yet.
            offers: Mutex::new((u64::MAX, Arc::default())),
            ended,
            stop,
            keeper: tokio::sync::Mutex::new(Some(keeper)),
        }
    }

    /// Why it ended; `None` while it is alive.
    pub(crate) fn ended(&self) -> Option<String> {
        self.ended.borrow().clone()
    }

    /// The tools that it offers; listed again after the server reports a change.
    pub(crate) async fn offers(&self) -> Result<Arc<Offers>, McpError> {
        let version = *self.hearing.changes.borrow();
        {
            let known = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
            if known.0 == version {
                return Ok(Arc::clone(&known.1));
            }
        }
        let within = self.spec.limits.start;
        let offers = match timeout(within, self.list()).await {
            Ok(offers) => Arc::new(offers?),
            Err(_) => return Err(self.slow("the request for its tools", within)),
        };
        *self.offers.lock().unwrap_or_else(PoisonError::into_inner) = (version, Arc::clone(&offers));
        Ok(offers)
    }

    async fn list(&self) -> Result<Offers, McpError> {
        let greeting = self.peer.peer_info();
        if greeting.is_none_or(|greeting| greeting.capabilities.tools.is_none()) {
            return Ok(Offers::default());
        }
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            let page = match self.peer.send_request(request).await {
                Ok(page) => as_sent(page),
                Err(error) => return Err(self.told(error).await),
            };
            let page = Page::of(page).map_err(|why| self.refused(0, why))?;
            let room = (MAX_TOOLS * 2).saturating_sub(tools.len());
            tools.extend(page.tools.into_iter().take(room));
            cursor = page.next;
            if cursor.is_none() || tools.len() >= MAX_TOOLS * 2 {
                break;
            }
        }
        Ok(Offers::of(&self.spec, tools))
    }

    /// Calls a tool by the server's name for it; returns the result as the server sent it. Dropping the future cancels the
    /// call at the server.
    pub(crate) async fn call(self: &Arc<Self>, tool: &str, call: Call) -> Result<Value, McpError> {
        let limit = self.spec.limits.call;
        let within = call.time.map_or(limit, |time| time.min(limit));
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(call.arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut ended = self.ended.subscribe();
        let asking = self.ask(request, call.on_progress);
        let (mut pending, answer) = match timeout(within, asking).await {
            Ok(Ok(asked)) => asked,
            Ok(Err(error)) => return Err(self.told(error).await),
            Err(_) => return Err(self.slow("a call", within)),
        };
        let answer = tokio::select! {
            biased;
            answer = answer => answer.unwrap_or(Err(ServiceError::TransportClosed)),
            () = told_of(&mut ended, Option::is_some) => Err(ServiceError::TransportClosed),
            () = sleep(within) => {
                pending.suspicious = true;
                return Err(self.slow("a call", within));
            }
        };
        pending.open = false;
        match answer {
            Ok(result) => Ok(as_sent(result)),
            Err(error) => Err(self.told(error).await),
        }
    }

    async fn ask(
        self: &Arc<Self>,
        request: ClientRequest,
        on_progress: OnProgress,
    ) -> Result<(Pending, Answering), ServiceError> {
        // Held while sending, so that no progress arrives before its route exists.
        let mut routes = self.hearing.routes.lock().await;
        let options = PeerRequestOptions::no_options();
        let handle = self.peer.send_cancellable_request(request, options).await?;
        routes.insert(handle.progress_token.clone(), on_progress);
        let pending = Pending {
            connection: Arc::clone(self),
            id: handle.id,
            token: handle.progress_token,
            open: true,
            suspicious: false,
        };
        Ok((pending, handle.rx))
    }

    fn slow(&self, what: &'static str, within: Duration) -> McpError {
        McpError::Slow {
            server: self.spec.name.clone(),
            what,
            within,
        }
    }

    fn refused(&self, code: i32, message: &str) -> McpError {
        McpError::Refused {
            server: self.spec.name.clone(),
            code,
            message: words(message),
        }
    }

    /// Converts an SDK error. A transport error ends the connection.
    async fn told(&self, error: ServiceError) -> McpError {
        let why = match error {
            ServiceError::McpError(error) => return self.refused(error.code.0, &error.message),
            ServiceError::TransportClosed => {
                let mut ended = self.ended.subscribe();
                let _ = timeout(LAST_WORDS * 2, told_of(&mut ended, Option::is_some)).await;
                self.ended()
                    .unwrap_or_else(|| "it closed the connection".to_owned())
            }
            ServiceError::TransportSend(error) => words(&with_causes(&error)),
            other => return self.refused(0, &other.to_string()),
        };
        self.condemn(&why);
        McpError::Gone {
            server: self.spec.name.clone(),
            why,
        }
    }

    /// Ends it and records `why`.
    pub(crate) fn condemn(&self, why: &str) {
        first_word(&self.ended, why);
        self.stop.send_replace(true);
    }

    /// Ends it and waits until its processes are gone.
    pub(crate) async fn close(&self) {
        self.condemn("it was stopped");
        if let Some(keeper) = self.keeper.lock().await.take() {
            // The keeper's own waits have deadlines.
            let _ = keeper.await;
        }
    }

    async fn prove_alive(&self) {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        if timeout(PROOF_WITHIN, self.peer.send_request(ping)).await.is_err() {
            self.condemn("it hangs: a call timed out, and then it did not answer a ping");
        }
    }
}

/// A result as the server sent it. The SDK keeps the JSON of a result that does not match its types as a whole; our own
/// readers take each tool and each item of it alone.
fn as_sent(result: ServerResult) -> Value {
    match result {
        ServerResult::CustomResult(CustomResult(sent)) => sent,
        known => serde_json::to_value(known).unwrap_or_default(),
    }
}

type Answering = tokio::sync::oneshot::Receiver<Result<ServerResult, ServiceError>>;

/// A request in flight. Dropping it while it is open cancels it.
struct Pending {
    connection: Arc<Connection>,
    id: RequestId,
    token: ProgressToken,
    open: bool,
    suspicious: bool,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let connection = Arc::clone(&self.connection);
        let (id, token) = (self.id.clone(), self.token.clone());
        let (open, suspicious) = (self.open, self.suspicious);
        runtime.spawn(async move {
            connection.hearing.routes.lock().await.remove(&token);
            if open && connection.ended().is_none() {
                let cancel = CancelledNotificationParam::new(
                    Some(id),
                    Some("no caller waits for the result".to_owned()),
                );
                let _ = timeout(SAY_WITHIN, connection.peer.notify_cancelled(cancel)).await;
            }
            if suspicious {
                connection.prove_alive().await;
            }
        });
    }
}

/// Waits until the value satisfies `so`, or the sender is gone.
async fn told_of<T>(receiver: &mut watch::Receiver<T>, so: impl FnMut(&T) -> bool) {
    let _ = receiver.wait_for(so).await;
}

fn first_word(ended: &Ended, why: &str) {
    ended.send_if_modified(|word| {
        let first = word.is_none();
        word.get_or_insert_with(|| why.to_owned());
        first
    });
}

/// Keeps a server until it ends or is stopped, then makes sure that none of its processes remain.
async fn keep(reached: Reached, mut stopped: watch::Receiver<bool>, ended: Ended) {
    let Reached { service, mut process } = reached;
    let token = service.cancellation_token();
    let mut serving = pin!(running(service));
    let mut closed = false;
    let why = tokio::select! {
        why = exit_of(&mut process) => why,
        () = &mut serving => {
            closed = true;
            let words = timeout(LAST_WORDS, exit_of(&mut process)).await;
            words.unwrap_or_else(|_| "it closed the connection".to_owned())
        }
        () = told_of(&mut stopped, |stop| *stop) => "it was stopped".to_owned(),
    };
    first_word(&ended, &why);
    token.cancel();
    if !closed {
        // Cancelling closes its input, the polite way to end it.
        let _ = timeout(GRACE, &mut serving).await;
    }
    if let Some(mut process) = process {
        let _ = timeout(GRACE, process.ended()).await;
        process.end(END_WITHIN).await;
    }
}

async fn running(service: RunningService<RoleClient, Hearing>) {
    let _ = service.waiting().await;
}

async fn exit_of(process: &mut Option<Box<dyn Process>>) -> String {
    match process {
        Some(process) => process.ended().await,
        None => std::future::pending().await,
    }
}
