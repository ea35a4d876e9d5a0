//! The shared state of the methods: handles to the actors, the settings, facts about the node.

use crate::actors::{ActorRow, IndexRow};
use crate::approvals::KnownApprovals;
use crate::backup::Staged;
use crate::crowd::Crowds;
use crate::daily::DailyUsage;
use crate::fleet::Minutes;
use crate::methods::Scope;
use crate::peers::Peers;
use crate::sight::{Caller, Seen};
use crate::sign_in::Codes;
use crate::tokens::{Tokens, bad_token};
use crate::turns::KeyTurns;
use crate::uploads::Uploads;
use agentd_actor_kit::{
    CallError, Clock, Done, FeedMsg, GateMsg, Handle, Read, Routed, StoreMsg, SupervisorMsg, ToolMsg,
};
use agentd_admission::Budget;
use agentd_checkpoint::Keeper;
use agentd_file_work::Turns;
use agentd_prompt::Places;
use agentd_protocol::{Fault, Labels, ModelStatus, Principal, Reloaded, ServerRow, Timestamp};
use agentd_settings::{Live, Loaded};
use agentd_store::{Backend, IdempotencyKey, StoreError};
use agentd_tools::{Registry, TagFinders, ToolEntry};
use agentd_turn::{Command, Reply};
use agentd_workspace::Workspaces;
use async_trait::async_trait;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// The timeout of a read.
pub(crate) const READ: Duration = Duration::from_secs(10);
/// The time a command may take to become durable.
pub(crate) const COMMAND: Duration = Duration::from_secs(30);

/// The maximum number of concurrent file comparisons on one file system.
const COMPARING: usize = 4;
/// Lists that read all rows at the same time; the store's other readers stay free.
const SORTING: usize = 1;
/// Whole logs that are folded at the same time.
const FOLDING: usize = 2;

/// Information that only the node as a whole has.
#[async_trait]
pub trait NodeView: Debug + Send + Sync {
    /// The configured models with their providers' states.
    async fn models(&self) -> Vec<ModelStatus>;
    /// The default model, and why it is the default.
    fn default_model(&self) -> String;
    /// The actors and services of the node, in the order in which they start.
    async fn actors(&self) -> Vec<ActorRow>;
    /// The search indexes.
    async fn indexes(&self) -> Vec<IndexRow>;
    /// Restarts of singleton actors since the start.
    fn restarts(&self) -> u64;
    /// The tool servers, one row for each place where a server runs or ran.
    fn servers(&self) -> Vec<ServerRow>;
    /// The names of the configured tool servers.
    fn server_names(&self) -> Vec<String>;
    /// The tools of servers, as far as they are known yet.
    fn server_tools(&self) -> Vec<ToolEntry>;
}

/// Reloads the configuration, the rules and the keys.
#[async_trait]
pub trait Reload: Debug + Send + Sync {
    /// Returns when the new ones are in force. After a fault the old ones stay in force.
    async fn reload(&self, by: &Principal) -> Result<Reloaded, Fault>;
}

/// Facts about the node that do not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    /// The node's name.
    pub node: String,
    /// Version of the program.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// When the daemon started.
    pub started_at: Timestamp,
    /// The control socket.
    pub socket: String,
    /// The HTTP address as a URL, or `off`.
    pub http: String,
    /// The store's URL without secrets.
    pub store: String,
    /// The data directory.
    pub data_dir: String,
    /// The level of the sandbox and the number of its gaps, as text.
    pub sandbox: String,
    /// Why no session can be created, and the remedy: the sandbox that the settings require is missing.
    pub no_sandbox: Option<(String, String)>,
    /// Whether commands run in a sandbox, which cannot enclose a directory that contains the data directory.
    pub walls: bool,
}

/// A client's request to stop the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// Stop after running work has ended.
    Drain,
    /// Stop now.
    Stop,
}

/// The parts of an [`Api`].
#[derive(Debug)]
pub struct Parts {
    /// Receives commands.
    pub supervisor: Handle<SupervisorMsg>,
    /// Serves reads.
    pub store: Handle<StoreMsg>,
    /// Serves viewers.
    pub feed: Handle<FeedMsg>,
    /// Looks at the files of calls that wait for an answer.
    pub tools: Handle<ToolMsg>,
    /// Lists the entirely denied tools when a session is created.
    pub gate: Handle<GateMsg>,
    /// Imports bypass the store actor: they take long, and the new session has no owner yet.
    pub backend: Arc<dyn Backend>,
    /// Information that only the node as a whole has.
    pub view: Arc<dyn NodeView>,
    /// The tools.
    pub registry: Registry,
    /// The configuration, with the source of each value. A reload replaces it.
    pub loaded: Live<Loaded>,
    /// Carries out `node.reload`.
    pub reload: Arc<dyn Reload>,
    /// Directories of instructions, custom agents, skills and commands.
    pub places: Places,
    /// Time and entropy.
    pub clock: Clock,
    /// Facts about the node.
    pub facts: NodeFacts,
    /// Receives the requests of `node.drain` and `node.stop`.
    pub stop: mpsc::Sender<StopRequest>,
    /// Receives lines for the audit file.
    pub audit: mpsc::Sender<Value>,
    /// The other nodes; `None`: there can be none.
    pub peers: Option<Arc<dyn Peers>>,
    /// What parses source files, if there is anything.
    pub parsers: Option<Arc<dyn TagFinders>>,
    /// The workspaces of sessions.
    pub workspaces: Workspaces,
    /// Keeps the recorded files of working directories.
    pub checkpoints: Keeper,
    /// What is protected whatever the working directory is.
    pub protected: agentd_protected::Places,
    /// Usage by day. Something else feeds it the log.
    pub daily: Arc<DailyUsage>,
}

/// Implements every method of the control protocol.
#[derive(Debug)]
pub struct Api {
    pub(crate) parts: Parts,
    pub(crate) uploads: Mutex<Uploads>,
    pub(crate) known: Mutex<KnownApprovals>,
    pub(crate) turns: KeyTurns,
    pub(crate) tokens: Tokens,
    pub(crate) codes: Codes,
    /// Counts of the fleet.
    pub(crate) minutes: Minutes,
    /// Permits for file comparisons.
    pub(crate) comparing: Turns,
    /// Permits for checks of the whole store.
    pub(crate) checking: Arc<Semaphore>,
    /// Permits for lists that read all rows.
    pub(crate) sorting: Semaphore,
    /// Permits for folding whole logs.
    pub(crate) folding: Semaphore,
    /// Permits for searches of the audit files.
    pub(crate) auditing: Arc<Semaphore>,
    /// Permits for copies of the data directory.
    pub(crate) copying: Arc<Semaphore>,
    /// The copy that a client is fetching.
    pub(crate) staged: Mutex<Option<Staged>>,
    /// The memory for requests, over all connections of all transports.
    memory: Arc<Budget>,
    viewers: AtomicU64,
    pub(crate) crowds: Crowds,
    connections: Arc<AtomicU64>,
}

/// An open connection, counted until dropped.
#[derive(Debug)]
pub struct ConnectionCount(Arc<AtomicU64>);

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Api {
    /// Creates the methods over these parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            memory: Arc::new(Budget::new(parts.loaded.now().settings.limits.frames_bytes)),
            parts,
            uploads: Mutex::default(),
            known: Mutex::default(),
            turns: KeyTurns::default(),
            tokens: Tokens::default(),
            codes: Codes::default(),
            minutes: Minutes::default(),
            comparing: Turns::new(COMPARING),
            checking: Arc::new(Semaphore::new(1)),
            sorting: Semaphore::new(SORTING),
            folding: Semaphore::new(FOLDING),
            auditing: Arc::new(Semaphore::new(crate::audit::AUDITING)),
            copying: Arc::new(Semaphore::new(1)),
            staged: Mutex::default(),
            viewers: AtomicU64::new(1),
            crowds: Crowds::default(),
            connections: Arc::default(),
        }
    }

    /// The scopes of a principal: all for a local user, its own for a live token, none for anyone else.
    #[must_use]
    pub fn scopes(&self, who: &Principal) -> Vec<Scope> {
        if who.as_user().is_some() {
            return Scope::ALL.to_vec();
        }
        self.tokens
            .of(who)
            .map(|held| held.scopes.clone())
            .unwrap_or_default()
    }

    /// The principal that a token stands for.
    ///
    /// # Errors
    /// The fault `bad_token`, the same for a token that is unknown, revoked or expired; or the store's.
    pub async fn authenticate(&self, token: &str) -> Result<Principal, Fault> {
        self.tokens_read().await?;
        let held = self
            .tokens
            .find(token, &self.parts.backend)
            .ok_or_else(bad_token)?;
        Ok(Principal::token(&held.name))
    }

    /// Returns when the token of a principal is revoked or expires; for a local user, never. A connection of a token
    /// ends then.
    pub async fn revoked(&self, who: &Principal) {
        match (who.as_token(), self.tokens.of(who)) {
            (Some(_), Some(held)) => held.ended().await,
            (Some(_), None) => {}
            (None, _) => std::future::pending().await,
        }
    }

    /// The labels that limit a principal's sight; empty: it sees all sessions.
    #[must_use]
    pub fn labels_of(&self, who: &Principal) -> Labels {
        let held = self.tokens.of(who);
        held.map(|held| held.labels.clone()).unwrap_or_default()
    }

    pub(crate) async fn tokens_read(&self) -> Result<(), Fault> {
        self.tokens.ready(&self.parts.backend, self.parts.clock).await
    }

    /// The current configuration.
    #[must_use]
    pub fn loaded(&self) -> Arc<Loaded> {
        self.parts.loaded.now()
    }

    /// The memory for requests, which all transports share.
    #[must_use]
    pub const fn memory(&self) -> &Arc<Budget> {
        &self.memory
    }

    /// Facts about the node.
    #[must_use]
    pub const fn facts(&self) -> &NodeFacts {
        &self.parts.facts
    }

    /// Counts a connection until the returned value is dropped.
    #[must_use]
    pub fn connection_opened(&self) -> ConnectionCount {
        self.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionCount(Arc::clone(&self.connections))
    }

    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// A viewer number that is never reused.
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
        who: &Caller,
        session: Seen,
        command: Command,
        key: Option<IdempotencyKey>,
    ) -> Result<Reply, Fault> {
        let (session, command, by) = (*session, Box::new(command), who.principal().clone());
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

/// The fault of a fault point that was set to fail.
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
    .hint("try again; a command with an idempotency key never runs twice")
}
