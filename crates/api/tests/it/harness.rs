//! An api over the real memory store and the real feed. A fake supervisor actor writes the commands that it receives.

#[path = "harness/log.rs"]
mod log;
#[path = "harness/player.rs"]
mod player;

use agentd_actor_kit::{Clock, FeedMsg, GateMsg, Handle, Pointer, StoreMsg, SupervisorMsg};
use agentd_api::{Api, DailyUsage, NodeFacts, Parts, StopRequest};
use agentd_checkpoint::Keeper;
use agentd_protocol::*;
use agentd_session_store::{Feed, FeedArgs, FeedLimits, OnFatal, SessionStore, StoreArgs, StoreLimits};
use agentd_settings::{Live, Settings};
use agentd_store::{Backend, MemoryStore};
use agentd_tools::Registry;
use agentd_workspace::{GitEnvironment, Workspaces};
use log::Log;
use player::{Gate, Played, Player, Supervisor, View};
use ractor::Actor;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// The parts that a test uses.
pub(crate) struct Harness {
    pub(crate) api: Arc<Api>,
    pub(crate) log: Log,
    pub(crate) feed: Handle<FeedMsg>,
    pub(crate) gate: Pointer<GateMsg>,
    pub(crate) supervisor: Pointer<SupervisorMsg>,
    pub(crate) played: Arc<Mutex<Played>>,
    pub(crate) stop: mpsc::Receiver<StopRequest>,
    /// The lines for the audit file.
    pub(crate) audit: mpsc::Receiver<Value>,
    /// Usage by day, which the node feeds.
    pub(crate) daily: Arc<DailyUsage>,
    pub(crate) dir: tempfile::TempDir,
}

/// The real store and the real feed.
async fn storage(backend: &Arc<dyn Backend>) -> (Handle<StoreMsg>, Handle<FeedMsg>) {
    let args = FeedArgs {
        committed: backend.committed(),
        limits: FeedLimits::default(),
    };
    let feed = Handle::fixed("the feed", Actor::spawn(None, Feed, args).await.unwrap().0);
    let args = StoreArgs {
        backend: Arc::clone(backend),
        feed: feed.clone(),
        limits: StoreLimits::default(),
        on_fatal: OnFatal::new(|_| {}),
    };
    (
        Handle::fixed(
            "the store",
            Actor::spawn(None, SessionStore, args).await.unwrap().0,
        ),
        feed,
    )
}

fn facts() -> NodeFacts {
    NodeFacts {
        sandbox: "none".to_owned(),
        no_sandbox: None,
        walls: false,
        node: "a1".into(),
        version: "0.1.0".into(),
        pid: 7,
        started_at: Timestamp(1_763_629_200_123),
        socket: "/run/agentd.sock".into(),
        http: "http://127.0.0.1:7433".into(),
        store: "memory:".into(),
        data_dir: "/data".into(),
    }
}

/// Makes the directories of a test. Returns that of the daemon's data.
fn directories(dir: &Path) -> std::path::PathBuf {
    let [data, ..] = ["data", "home", "work"].map(|name| {
        let path = dir.join(name);
        std::fs::create_dir(&path).unwrap();
        path
    });
    data
}

impl Harness {
    /// Starts with the default settings.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts with changed settings.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::over(Arc::new(MemoryStore::default()), change).await
    }

    /// Starts with a store and changed settings.
    pub(crate) async fn over(backend: Arc<dyn Backend>, change: impl FnOnce(&mut Settings)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = directories(dir.path());
        let (store, feed) = storage(&backend).await;
        let log = Log {
            store: store.clone(),
            backend: Arc::clone(&backend),
            clock: Clock::System,
        };
        let played = Arc::new(Mutex::new(Played::default()));
        let player = Player {
            log: log.clone(),
            played: Arc::clone(&played),
        };
        let supervisor = Pointer::new("the supervisor");
        supervisor.set(Actor::spawn(None, Supervisor, player).await.unwrap().0);
        let gate = Pointer::new("the gate");
        gate.set(Actor::spawn(None, Gate, ()).await.unwrap().0);
        let mut settings = Settings::default();
        change(&mut settings);
        let (stop_tx, stop) = mpsc::channel(1);
        let (audit_tx, audit) = mpsc::channel(64);
        let daily = Arc::<DailyUsage>::default();
        let parts = Parts {
            supervisor: supervisor.handle(),
            store,
            feed: feed.clone(),
            tools: Pointer::new("the tools").handle(),
            gate: gate.handle(),
            backend,
            view: Arc::new(View),
            registry: Registry::builtin(&settings.tools),
            parsers: None,
            loaded: Live::new(settings.into()),
            reload: Arc::new(View),
            places: agentd_prompt::Places::default(),
            clock: Clock::System,
            facts: facts(),
            stop: stop_tx,
            audit: audit_tx,
            peers: None,
            daily: Arc::clone(&daily),
            workspaces: Workspaces::open(&data_dir, GitEnvironment::default()).unwrap(),
            checkpoints: keeper(&data_dir),
            protected: agentd_protected::Places::of(Some(&dir.path().join("home")), [data_dir]),
        };
        Self {
            api: Arc::new(Api::new(parts)),
            log,
            feed,
            gate,
            supervisor,
            played,
            stop,
            audit,
            daily,
            dir,
        }
    }

    /// The caller.
    pub(crate) fn ana() -> Principal {
        Principal::user("ana")
    }

    /// Calls as ana.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, Fault> {
        self.api.call(&Self::ana(), method, params).await
    }

    /// The code of the fault of a call that must fail.
    pub(crate) async fn refused(&self, method: &str, params: Value) -> (FaultClass, String) {
        let fault = self.call(method, params).await.unwrap_err();
        (fault.class, fault.code)
    }

    /// Creates a session with a title.
    pub(crate) async fn session(&self, title: &str) -> SessionId {
        let created = self
            .call(
                "session.create",
                json!({ "workdir": self.workdir(), "title": title }),
            )
            .await
            .unwrap();
        serde_json::from_value::<Created>(created).unwrap().session
    }

    /// An existing directory.
    pub(crate) fn workdir(&self) -> String {
        self.dir.path().join("work").to_str().unwrap().to_owned()
    }
}

fn keeper(data_dir: &Path) -> Keeper {
    Keeper::new(
        &data_dir.join("checkpoints"),
        agentd_checkpoint::Limits::default(),
    )
}
