//! What the methods stand on: handles to the actors, the settings, facts of the node.

use crate::approvals::KnownApprovals;
use crate::backup::Staged;
use crate::crowd::Crowd;
use crate::methods::Scope;
use crate::turns::KeyTurns;
use crate::uploads::Uploads;
use agentd_actor_kit::{
    CallError, Clock, Done, FeedMsg, GateMsg, Handle, Read, Routed, StoreMsg, SupervisorMsg,
};
use agentd_prompt::Places;
use agentd_protocol::{Fault, ModelStatus, Principal, Reloaded, ServerRow, SessionId, Timestamp};
use agentd_settings::{Live, Loaded};
use agentd_store::{Backend, IdempotencyKey, StoreError};
use agentd_tools::{Registry, ToolEntry};
use agentd_turn::{Command, Reply};
use async_trait::async_trait;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// How long a read may take.
pub(crate) const READ: Duration = Duration::from_secs(10);
/// How long a command may take until it is durable.
pub(crate) const COMMAND: Duration = Duration::from_secs(30);

/// How many comparisons of files may go on at the same time.
const COMPARING: usize = 4;

/// What only the node as a whole can say.
#[async_trait]
pub trait NodeView: Debug + Send + Sync {
    /// The configured models with the state of their providers.
    async fn models(&self) -> Vec<ModelStatus>;
    /// The default model and why.
    fn default_model(&self) -> String;
    /// Restarts of singleton actors since the start.
    fn restarts(&self) -> u64;
    /// The tool servers, one row for each place where one runs or ran.
    fn servers(&self) -> Vec<ServerRow>;
    /// The names of the configured tool servers.
    fn server_names(&self) -> Vec<String>;
    /// The tools of servers, as far as they are known now.
    fn server_tools(&self) -> Vec<ToolEntry>;
}

/// Reads the configuration, the rules and the keys again.
#[async_trait]
pub trait Reload: Debug + Send + Sync {
    /// Answers when the new ones are in force. After a fault the old ones are.
    async fn reload(&self, by: &Principal) -> Result<Reloaded, Fault>;
}

/// Facts of the node that do not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    /// The node's name.
    pub node: String,
    /// Version of the program.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Since when.
    pub started_at: Timestamp,
    /// The control socket.
    pub socket: String,
    /// The store's URL without secrets.
    pub store: String,
    /// The data directory.
    pub data_dir: String,
    /// The level of the sandbox and the number of its gaps, in words.
    pub sandbox: String,
    /// Why no session can be created, and what to do: the sandbox that the settings ask for is missing.
    pub no_sandbox: Option<(String, String)>,
    /// Whether commands run behind walls: these cannot stand around a directory that holds the data directory.
    pub walls: bool,
}

/// A client wants the daemon to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// After what runs has ended.
    Drain,
    /// Now.
    Stop,
}

/// What an [`Api`] is made of.
#[derive(Debug)]
pub struct Parts {
    /// Commands go here.
    pub supervisor: Handle<SupervisorMsg>,
    /// Reads go here.
    pub store: Handle<StoreMsg>,
    /// Viewers go here.
    pub feed: Handle<FeedMsg>,
    /// Asked for wholly denied tools when a session is created.
    pub gate: Handle<GateMsg>,
    /// Imports go past the actor: they are long, and nobody owns the session yet.
    pub backend: Arc<dyn Backend>,
    /// What only the node as a whole can say.
    pub view: Arc<dyn NodeView>,
    /// The tools.
    pub registry: Registry,
    /// The configuration, with where each value was set. A reload replaces it.
    pub loaded: Live<Loaded>,
    /// Carries out `node.reload`.
    pub reload: Arc<dyn Reload>,
    /// Where instructions, custom agents, skills and commands are looked for.
    pub places: Places,
    /// Time and entropy.
    pub clock: Clock,
    /// Facts of the node.
    pub facts: NodeFacts,
    /// Where `node.drain` and `node.stop` are heard.
    pub stop: mpsc::Sender<StopRequest>,
}

/// Every method of the control protocol.
#[derive(Debug)]
pub struct Api {
    pub(crate) parts: Parts,
    pub(crate) uploads: Mutex<Uploads>,
    pub(crate) known: Mutex<KnownApprovals>,
    pub(crate) turns: KeyTurns,
    /// Comparisons of files that go on at the same time.
    pub(crate) comparing: Semaphore,
    /// Looks through the whole store that go on at the same time.
    pub(crate) checking: Arc<Semaphore>,
    /// Copies of the data directory that are made at the same time.
    pub(crate) copying: Arc<Semaphore>,
    /// The copy that is fetched.
    pub(crate) staged: Mutex<Option<Staged>>,
    viewers: AtomicU64,
    pub(crate) crowd: Crowd,
    connections: Arc<AtomicU64>,
}

/// One open connection, counted while it lives.
#[derive(Debug)]
pub struct ConnectionCount(Arc<AtomicU64>);

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Api {
    /// The methods over these parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            parts,
            uploads: Mutex::default(),
            known: Mutex::default(),
            turns: KeyTurns::default(),
            comparing: Semaphore::new(COMPARING),
            checking: Arc::new(Semaphore::new(1)),
            copying: Arc::new(Semaphore::new(1)),
            staged: Mutex::default(),
            viewers: AtomicU64::new(1),
            crowd: Crowd::default(),
            connections: Arc::default(),
        }
    }

    /// What a principal may do: a local user everything, anybody else nothing.
    #[must_use]
    pub fn scopes(&self, who: &Principal) -> Vec<Scope> {
        if who.0.starts_with("user:") {
            Scope::ALL.to_vec()
        } else {
            Vec::new()
        }
    }

    /// The present configuration.
    #[must_use]
    pub fn loaded(&self) -> Arc<Loaded> {
        self.parts.loaded.now()
    }

    /// Facts of the node.
    #[must_use]
    pub const fn facts(&self) -> &NodeFacts {
        &self.parts.facts
    }

    /// Counts a connection until the answer is dropped.
    #[must_use]
    pub fn connection_opened(&self) -> ConnectionCount {
        self.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionCount(Arc::clone(&self.connections))
    }

    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// A number for a viewer, never used twice.
    pub(crate) fn next_viewer(&self) -> u64 {
        self.viewers.fetch_add(1, Ordering::Relaxed)
    }

    /// Reads from the store.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(Done<Result<T, StoreError>>) -> Read,
    ) -> Result<T, Fault> {
        read_from(&self.parts.store, read).await
    }

    /// Sends a command to a session and waits until it is durable.
    pub(crate) async fn route(
        &self,
        who: &Principal,
        session: SessionId,
        command: Command,
        key: Option<IdempotencyKey>,
    ) -> Result<Reply, Fault> {
        let (command, by) = (Box::new(command), who.clone());
        let routed = |done| {
            SupervisorMsg::Route(Routed {
                session,
                command,
                by,
                key,
                done,
            })
        };
        self.parts
            .supervisor
            .call(COMMAND, routed)
            .await
            .map_err(fault_of)?
    }
}

/// Reads from the store.
pub(crate) async fn read_from<T: Send + 'static>(
    store: &Handle<StoreMsg>,
    read: impl FnOnce(Done<Result<T, StoreError>>) -> Read,
) -> Result<T, Fault> {
    let answer = store
        .call(READ, |done| StoreMsg::Read(read(done)))
        .await
        .map_err(fault_of)?;
    answer.map_err(Fault::from)
}

/// A fault point that was told to fail.
pub(crate) fn struck(injected: agentd_fault_points::Injected) -> Fault {
    Fault::internal("fault_point", injected.to_string())
}

/// The fault of an actor that did not answer.
pub(crate) fn fault_of(error: CallError) -> Fault {
    let message = error.to_string();
    match error {
        CallError::Gone(_) => Fault::unavailable("actor_down", message),
        CallError::Timeout(_) => Fault::timeout("actor_slow", message),
    }
    .hint("try again; a command with an idempotency key is never carried out twice")
}
