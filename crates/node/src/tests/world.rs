//! A separate tree for each test.

use super::script::{MODEL, READ, models};
use crate::children::{Child, ChildArgs, Handles};
use crate::reload::Present;
use crate::root::{Health, RootMsg, Tree};
use crate::service::Service;
use agentd_actor_kit::{
    CallError, Clock, Done, FeedFrame, FeedMsg, GateMsg, Handle, ModelMsg, Routed, SupervisorMsg, ToolMsg,
    Tracer, Viewer,
};
use agentd_index::{IndexerArgs, Limits, ReadRule};
use agentd_protocol::{
    Block, Budget, Delta, EffectClass, Event, EventBody, Fault, LoopLimits, PermissionMode, Principal,
    RunState, SessionCreated, SessionId, Timestamp,
};
use agentd_sandbox::Environment;
use agentd_settings::Settings;
use agentd_store::testing::CountingLog;
use agentd_store::{EncodedEvent, MemoryStore, Range, SessionLog};
use agentd_tool_executor::ExecutorArgs;
use agentd_tools::Registry as Tools;
use agentd_turn::{Command, NewInput, Reply};
use ractor::{ActorId, ActorRef, Message};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Longer than any wait of a test, in the time of the paused clock.
pub(super) const LONG: Duration = Duration::from_secs(10_000);
/// Concurrent tool calls.
pub(super) const PERMITS: u32 = 2;

/// How a singleton is brought down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Kill,
    Panic,
}

pub(super) struct World {
    pub(super) handles: Handles,
    pub(super) log: Arc<CountingLog>,
    pub(super) health: watch::Receiver<Health>,
    pub(super) clock: Clock,
    dir: TempDir,
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(Vec::new()).await.0
    }

    /// A tree with these services, and its root.
    pub(super) async fn with(services: Vec<Service>) -> (Self, ActorRef<RootMsg>) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), "forty-two").unwrap();
        let log = Arc::new(CountingLog::new(Arc::new(MemoryStore::default())));
        let clock = Clock::virtual_from(Timestamp(1_763_629_200_000));
        let mut settings = Settings::default();
        settings.tools.max_running = PERMITS;
        let child_args = ChildArgs {
            home: None,
            lease: agentd_store::Lease::default(),
            backend: log.clone(),
            http: crate::start::http(&settings).unwrap(),
            tools: Tools::builtin(&settings.tools),
            servers: None,
            executor: ExecutorArgs {
                protected: agentd_protected::ProtectedPaths::default(),
                exe: "/proc/self/exe".into(),
                environment: Environment::allowed(Vec::new(), &settings.sandbox.env),
                sandboxing: agentd_sandbox::Sandboxing::None,
                bounds: agentd_sandbox::Bounds::default(),
                network: None,
                spill_dir: dir.path().join("spill"),
                map_dir: dir.path().join("maps"),
                search: None,
                parsers: None,
                tools: settings.tools.clone(),
            },
            indexer: IndexerArgs {
                dir: dir.path().join("index"),
                limits: Limits::default(),
                rule: ReadRule::new(|_, _| true),
                embedder: None,
                parsers: None,
                clock,
            },
            present: Present::new(settings.into(), models()),
            clock,
            stages: Tracer::default(),
            subagents: Arc::default(),
            setup: Arc::new(agentd_hooks::NoSetup),
            workspaces: None,
            checkpoints: agentd_checkpoint::Keeper::new(
                &dir.path().join("checkpoints"),
                agentd_checkpoint::Limits::default(),
            ),
        };
        let tree = Tree::new(child_args);
        let (handles, health) = (tree.handles.clone(), tree.health.clone());
        let root = tree.start(services).await.unwrap();
        let world = Self {
            handles,
            health,
            log,
            clock,
            dir,
        };
        (world, root)
    }

    /// The incarnations of the singletons to which the handles point.
    pub(super) fn ids(&self) -> BTreeMap<Child, ActorId> {
        let handles = &self.handles;
        let mut ids = BTreeMap::from([
            (Child::Feed, id(&handles.feed)),
            (Child::SessionStore, id(&handles.store)),
            (Child::Indexer, id(&handles.indexer)),
            (Child::ToolExecutor, id(&handles.tools)),
            (Child::PermissionGate, id(&handles.gate)),
            (Child::LoopSupervisor, id(&handles.supervisor)),
        ]);
        for (name, client) in &handles.models {
            ids.insert(Child::ModelClient(name.clone()), id(client));
        }
        ids
    }

    /// The singletons that are new incarnations.
    pub(super) fn replaced(&self, before: &BTreeMap<Child, ActorId>) -> Vec<Child> {
        let now = self.ids();
        let replaced = before.iter().filter(|(child, id)| now[child] != **id);
        replaced.map(|(child, _)| child.clone()).collect()
    }

    /// Brings down a singleton: kills it, or makes its handler panic (the caller's callback runs there).
    pub(super) fn bring_down(&self, child: &Child, how: How) {
        let (handles, session) = (&self.handles, SessionId::NIL);
        match child {
            Child::Feed => down(&handles.feed, how, |done| FeedMsg::Deciders {
                sessions: vec![session],
                done,
            }),
            // Its handler only starts tasks, so nothing in it can panic.
            Child::SessionStore => handles.store.actor().unwrap().kill(),
            Child::ModelClient(name) => down(&handles.models[name], how, |done| ModelMsg::Status { done }),
            // Its handler neither waits for nor calls other actors.
            Child::Indexer => handles.indexer.actor().unwrap().kill(),
            Child::ToolExecutor => down(&handles.tools, how, |done| ToolMsg::Acquire {
                session,
                class: EffectClass::Read,
                workdir: "/".into(),
                done,
            }),
            Child::PermissionGate => down(&handles.gate, how, |done| GateMsg::Rules { done }),
            Child::LoopSupervisor => down(&handles.supervisor, how, |done| SupervisorMsg::Stats { done }),
            Child::Service(name) => panic!("{name} has no handle"),
        }
    }

    /// Waits until this many singletons have been restarted.
    pub(super) async fn restarted(&self, times: u64) {
        let health = self
            .health_when(|health| health.restarts >= times || health.fatal.is_some())
            .await;
        assert_eq!((health.restarts, health.fatal), (times, None));
    }

    /// Waits until the tree gives up. Returns the reason.
    pub(super) async fn fatal(&self) -> String {
        self.health_when(|health| health.fatal.is_some())
            .await
            .fatal
            .unwrap()
    }

    async fn health_when(&self, when: impl FnMut(&Health) -> bool) -> Health {
        let mut health = self.health.clone();
        let health = tokio::time::timeout(LONG, health.wait_for(when)).await;
        health.expect("the health stays").unwrap().clone()
    }

    pub(super) async fn ask(
        &self,
        session: SessionId,
        command: Command,
    ) -> Result<Result<Reply, Fault>, CallError> {
        ask(&self.handles.supervisor, session, command).await
    }

    pub(super) fn new_id(&self) -> SessionId {
        self.clock.stamp().session()
    }

    /// Creates a session with this prompt, on the usual model.
    pub(super) async fn create(&self, opening: &str) -> SessionId {
        let session = self.new_id();
        self.create_as(session, MODEL, opening).await;
        session
    }

    pub(super) async fn create_as(&self, session: SessionId, model: &str, opening: &str) {
        let created = creation(self.dir.path(), model, opening);
        self.ask(session, created).await.unwrap().unwrap();
    }

    pub(super) async fn events(&self, session: SessionId) -> Vec<Event> {
        events(&*self.log, session).await
    }

    /// Waits for an event of this type in the log.
    pub(super) async fn until(&self, session: SessionId, kind: &str) {
        until(&*self.log, session, kind).await;
    }

    /// Waits for the end of the turn, and checks that the log has no gap (I2). Returns the log.
    pub(super) async fn finished(&self, session: SessionId) -> Vec<Event> {
        self.until(session, "turn.finished").await;
        let events = self.events(session).await;
        assert_gap_free(&events);
        events
    }

    /// Checks that a session that uses every feature ends as it should.
    pub(super) async fn assert_it_works(&self) {
        let session = self.create(READ).await;
        let events = self.finished(session).await;
        assert!(last_text(&events).contains("forty-two"), "{:?}", kinds(&events));
    }

    /// Follows the events and deltas of a session.
    pub(super) async fn follow(&self, session: SessionId) -> mpsc::Receiver<FeedFrame> {
        let (queue, frames) = mpsc::channel(1_024);
        let viewer = Viewer {
            id: 1,
            queue,
            deltas: true,
            decides: false,
        };
        let attach = |done| FeedMsg::Attach {
            session,
            viewer,
            done,
        };
        self.handles.feed.call(LONG, attach).await.unwrap();
        frames
    }

    /// Advances the paused clock. Takes no wall time.
    pub(super) async fn pass(&self, time: Duration) {
        tokio::time::sleep_until(Instant::now() + time).await;
    }
}

fn id<M: Message>(handle: &Handle<M>) -> ActorId {
    handle.actor().expect("nothing is pointed at").get_id()
}

fn down<M: Message, T: Send + 'static>(handle: &Handle<M>, how: How, message: impl FnOnce(Done<T>) -> M) {
    match how {
        How::Kill => handle.actor().unwrap().kill(),
        How::Panic => handle.cast(message(Done::new(|_| panic!("as the test wants")))),
    }
}

/// Waits until a follower receives this state.
pub(super) async fn until_state(frames: &mut mpsc::Receiver<FeedFrame>, state: RunState) {
    let told = |frame: FeedFrame| match frame {
        FeedFrame::Delta(delta) => matches!(&*delta, Delta::Status(status) if status.state == state),
        FeedFrame::Event(_) | FeedFrame::Lagged => false,
    };
    let wait = async { while !told(frames.recv().await.expect("the feed is gone")) {} };
    tokio::time::timeout(LONG, wait)
        .await
        .expect("the state does not come");
}

pub(super) async fn ask(
    supervisor: &Handle<SupervisorMsg>,
    session: SessionId,
    command: Command,
) -> Result<Result<Reply, Fault>, CallError> {
    let route = |done| {
        SupervisorMsg::Route(Routed {
            session,
            command: Box::new(command),
            by: Principal::user("ana"),
            key: None,
            done,
        })
    };
    supervisor.call(LONG, route).await
}

pub(super) async fn events<L: SessionLog + ?Sized>(log: &L, session: SessionId) -> Vec<Event> {
    let page = log.load(session, Range::after(0)).await.unwrap();
    let lines = page.events.iter();
    lines
        .map(|(_, line)| EncodedEvent::decode(line).unwrap())
        .collect()
}

pub(super) async fn until<L: SessionLog + ?Sized>(log: &L, session: SessionId, kind: &str) {
    let mut committed = log.committed();
    let wait = async {
        loop {
            committed.borrow_and_update();
            if kinds(&events(log, session).await).contains(&kind) {
                return;
            }
            committed.changed().await.unwrap();
        }
    };
    let waited = tokio::time::timeout(LONG, wait).await;
    assert!(
        waited.is_ok(),
        "no {kind} in {:?}",
        kinds(&events(log, session).await)
    );
}

pub(super) fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.body.kind()).collect()
}

/// The attempts of model calls, in order.
pub(super) fn attempts(events: &[Event]) -> Vec<u32> {
    let attempt = |event: &Event| match &event.body {
        EventBody::ModelStarted(started) => Some(started.attempt),
        _ => None,
    };
    events.iter().filter_map(attempt).collect()
}

/// The model's last text in the last turn.
pub(super) fn last_text(events: &[Event]) -> String {
    let text = |event: &Event| match &event.body {
        EventBody::TurnFinished(finished) => Some(finished.text.clone()),
        _ => None,
    };
    events.iter().rev().find_map(text).unwrap_or_default()
}

/// Checks I2: seqs are 1, 2, 3, ….
pub(super) fn assert_gap_free(events: &[Event]) {
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
}

pub(super) fn rename(title: &str) -> Command {
    Command::Update {
        expect: None,
        title: Some(title.to_owned()),
        model: None,
        mode: None,
        labels: None,
        budget: None,
    }
}

pub(super) fn creation(workdir: &Path, model: &str, opening: &str) -> Command {
    let created = SessionCreated {
        title: "t".into(),
        project: "p".into(),
        workdir: workdir.display().to_string(),
        model: model.into(),
        mode: PermissionMode::Default,
        agent: None,
        labels: BTreeMap::new(),
        requires: BTreeMap::new(),
        parent: None,
        limits: LoopLimits::default(),
        budget: Budget::default(),
        tools: vec!["Read".into()],
        system_prompt: None,
        append_system_prompt: None,
        rules: Vec::new(),
        lineage: None,
        prompt: None,
        derived_title: false,
        workspace: None,
    };
    let first = NewInput {
        content: vec![Block::text(opening)],
        delivery: None,
        key: None,
        model: None,
    };
    Command::Create {
        created: Box::new(created),
        first: Some(first),
    }
}
