//! An isolated world for each test.

use super::peers::{Feed, Gate, Root, Store, Strings, Tools, Trick};
use super::puppets::{HookPuppet, HookPuppets, Job, ModelPuppet, Puppets, ToolPuppet};
use crate::{Bounds, LoopSupervisor, SupervisorArgs};
use agentd_actor_kit::{Clock, Done, Handle, Pointer, Routed, SupervisorMsg, SupervisorStats, Tracer};
use agentd_checkpoint::{Keeper, Limits};
use agentd_hooks::Hooks;
use agentd_protocol::{
    Block, Budget, Event, EventBody, Fault, HookEvent, LoopLimits, PermissionMode, Principal, RunState,
    SandboxLevel, SessionCreated, SessionId, Timestamp, ToolCallId, VerdictKind,
};
use agentd_provider::{ModelSpec, Registry as Models_, Script};
use agentd_session_loop::{ModelJob, Models, Services, Sharing, Timing, ToolJob, Workers};
use agentd_settings::{HookConfig, HooksConfig, Live};
use agentd_store::testing::CountingLog;
use agentd_store::{EncodedEvent, MemoryStore, Range, SessionLog as _};
use agentd_turn::{Command, Config, NewInput, Reply, SideRules};
use async_trait::async_trait;
use ractor::{Actor, ActorCell, ActorRef, SpawnErr};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;

/// Longer than anything that a test waits for, in paused-clock time.
const LONG: Duration = Duration::from_secs(100_000);

pub(super) type Answer = oneshot::Receiver<Result<Reply, Fault>>;

pub(super) struct World {
    pub(super) strings: Arc<Strings>,
    pub(super) puppets: Arc<Puppets>,
    pub(super) supervisor: ActorRef<SupervisorMsg>,
    pub(super) clock: Clock,
    args: SupervisorArgs,
    root: ActorRef<()>,
    jobs: UnboundedReceiver<Job>,
    hooks: UnboundedReceiver<HookPuppet>,
    commits: UnboundedReceiver<(SessionId, Vec<String>)>,
    cold: UnboundedReceiver<SessionId>,
    states: UnboundedReceiver<(SessionId, RunState)>,
}

/// The workers are shared with the test.
#[derive(Debug)]
struct Shared(Arc<Puppets>);

#[async_trait]
impl Workers for Shared {
    async fn model(&self, job: ModelJob) -> Result<ActorCell, SpawnErr> {
        self.0.model(job).await
    }

    async fn tool(&self, job: ToolJob) -> Result<ActorCell, SpawnErr> {
        self.0.tool(job).await
    }
}

async fn peer<A>(name: &'static str, actor: A, strings: &Arc<Strings>) -> Handle<A::Msg>
where
    A: Actor<Arguments = Arc<Strings>>,
{
    let (actor, _) = Actor::spawn(None, actor, Arc::clone(strings)).await.unwrap();
    Handle::fixed(name, actor)
}

async fn services(
    clock: Clock,
    strings: &Arc<Strings>,
    puppets: &Arc<Puppets>,
    hooks: Hooks,
    heard: Vec<HookEvent>,
    side: SideRules,
) -> Services {
    let mut registry = Models_::default();
    registry.insert(
        ModelSpec::scripted("scripted", Arc::new(Script::default())),
        "for tests",
    );
    registry.insert(
        ModelSpec {
            dialect: agentd_provider::Dialect::OpenaiChat,
            ..ModelSpec::scripted("chat", Arc::new(Script::default()))
        },
        "for tests",
    );
    let mut claude = ModelSpec {
        dialect: agentd_provider::Dialect::Anthropic,
        ..ModelSpec::scripted("claude", Arc::new(Script::default()))
    };
    claude.compat.prompt_cache = true;
    registry.insert(claude, "for tests");
    registry.insert(
        ModelSpec {
            dialect: agentd_provider::Dialect::OpenaiChat,
            context_window: 8_000,
            ..ModelSpec::scripted("tiny", Arc::new(Script::default()))
        },
        "for tests",
    );
    let client = Pointer::new("model client").handle();
    Services {
        clock,
        store: peer("store", Store, strings).await,
        feed: peer("feed", Feed, strings).await,
        gate: peer("gate", Gate, strings).await,
        tools: peer("tools", Tools, strings).await,
        models: Models::new(
            Live::new(registry),
            BTreeMap::from([("scripted".to_owned(), client)]),
        ),
        workers: Box::new(Shared(Arc::clone(puppets))),
        registry: agentd_tools::Registry::builtin(&agentd_tools::ToolLimits::default()),
        config: Live::new(Config {
            hooks: heard,
            side,
            ..Config::default()
        }),
        remote: None,
        hooks,
        stages: Tracer::default(),
        subagents: Arc::default(),
        sandbox: SandboxLevel::None,
        sharing: Sharing::default(),
        timing: Timing::default(),
        setup: Arc::new(agentd_hooks::NoSetup),
        files: None,
        checkpoints: Keeper::new(Path::new("/none"), Limits::default()),
        lease: agentd_store::Lease::default(),
    }
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(Bounds::default()).await
    }

    pub(super) async fn with(bounds: Bounds) -> Self {
        Self::build(bounds, Vec::new(), SideRules::default()).await
    }

    pub(super) async fn hooked(hooks: Vec<HookConfig>) -> Self {
        Self::build(Bounds::default(), hooks, SideRules::default()).await
    }

    /// A world in which models are asked outside of the turns.
    pub(super) async fn beside(side: SideRules) -> Self {
        Self::build(Bounds::default(), Vec::new(), side).await
    }

    async fn build(bounds: Bounds, hooks: Vec<HookConfig>, side: SideRules) -> Self {
        let (commits_tx, commits) = unbounded_channel();
        let (cold_tx, cold) = unbounded_channel();
        let (jobs_tx, jobs) = unbounded_channel();
        let (states_tx, states) = unbounded_channel();
        let strings = Arc::new(Strings {
            log: Arc::new(CountingLog::new(Arc::new(MemoryStore::default()))),
            tricks: Mutex::default(),
            swallowed: Mutex::default(),
            queued: Mutex::default(),
            commits: commits_tx,
            verdicts: Mutex::default(),
            hanging: Mutex::default(),
            hang: Mutex::default(),
            deciders: Mutex::default(),
            cold: cold_tx,
            states: states_tx,
        });
        let puppets = Arc::new(Puppets {
            jobs: jobs_tx,
            panics: 0.into(),
        });
        let clock = Clock::virtual_from(Timestamp(1_763_629_200_000));
        let (hooks_tx, asked) = unbounded_channel();
        let config = HooksConfig {
            run: hooks,
            ..HooksConfig::default()
        };
        let heard = config.heard();
        let hooks = Hooks::new(&config, Arc::new(HookPuppets(hooks_tx)));
        let services = services(clock, &strings, &puppets, hooks, heard, side).await;
        let args = SupervisorArgs {
            services: Arc::new(services),
            bounds,
        };
        let (root, _) = Actor::spawn(None, Root, ()).await.unwrap();
        let supervisor = LoopSupervisor::start(args.clone(), root.get_cell())
            .await
            .unwrap();
        Self {
            strings,
            puppets,
            supervisor,
            clock,
            args,
            root,
            jobs,
            hooks: asked,
            commits,
            cold,
            states,
        }
    }

    /// Kills the supervisor with all its loops, like a crash of the daemon, and starts another on the same store.
    pub(super) async fn crash(&mut self) {
        self.supervisor.kill_and_wait(None).await.unwrap();
        while self.jobs.try_recv().is_ok() {}
        self.supervisor = LoopSupervisor::start(self.args.clone(), self.root.get_cell())
            .await
            .unwrap();
    }

    pub(super) fn post(&self, session: SessionId, command: Command) -> Answer {
        let (done, answer) = Done::channel();
        let command = Box::new(command);
        let routed = Routed {
            session,
            command,
            by: Principal::user("ana"),
            key: None,
            done,
        };
        self.supervisor.cast(SupervisorMsg::Route(routed)).unwrap();
        answer
    }

    pub(super) async fn ask(&self, session: SessionId, command: Command) -> Result<Reply, Fault> {
        let answer = tokio::time::timeout(LONG, self.post(session, command))
            .await
            .unwrap();
        answer.unwrap_or_else(|_| Err(Fault::unavailable("gone", "no answer")))
    }

    /// A session with a first input.
    pub(super) async fn create(&self) -> SessionId {
        self.create_with(LoopLimits::default(), Some("do it")).await
    }

    pub(super) async fn create_with(&self, limits: LoopLimits, prompt: Option<&str>) -> SessionId {
        let session = self.clock.stamp().session();
        self.ask(session, creation(limits, prompt)).await.unwrap();
        session
    }

    async fn job(&mut self) -> Job {
        tokio::time::timeout(LONG, self.jobs.recv())
            .await
            .expect("no worker was started")
            .unwrap()
    }

    /// The next worker, which must be a model call.
    pub(super) async fn model(&mut self) -> ModelPuppet {
        match self.job().await {
            Job::Model(puppet) => puppet,
            Job::Tool(puppet) => panic!("a tool was started: {puppet:?}"),
        }
    }

    /// The next worker, which must be a tool call.
    pub(super) async fn tool(&mut self) -> ToolPuppet {
        match self.job().await {
            Job::Tool(puppet) => puppet,
            Job::Model(puppet) => panic!("a model was called: {puppet:?}"),
        }
    }

    /// The next hook that is asked.
    pub(super) async fn hook(&mut self) -> HookPuppet {
        tokio::time::timeout(LONG, self.hooks.recv())
            .await
            .expect("no hook was asked")
            .unwrap()
    }

    /// Whether every requested hook has been taken.
    pub(super) fn no_hook(&mut self) -> bool {
        self.hooks.try_recv().is_err()
    }

    /// Whether every started worker has been taken.
    pub(super) fn no_job(&mut self) -> bool {
        self.jobs.try_recv().is_err()
    }

    /// Waits for a commit of an event of this type.
    pub(super) async fn until(&mut self, session: SessionId, kind: &str) {
        let wait = async {
            while let Some((of, kinds)) = self.commits.recv().await {
                if of == session && kinds.iter().any(|k| k == kind) {
                    return;
                }
            }
        };
        let waited = tokio::time::timeout(LONG, wait).await;
        assert!(
            waited.is_ok(),
            "no {kind}; the log has {:?}",
            self.kinds(session).await
        );
    }

    /// Waits until the session has left memory.
    pub(super) async fn until_cold(&mut self, session: SessionId) {
        let wait = async { while self.cold.recv().await.is_some_and(|cold| cold != session) {} };
        tokio::time::timeout(LONG, wait).await.expect("it stays hot");
    }

    /// Waits until viewers have been told this state.
    pub(super) async fn until_state(&mut self, session: SessionId, state: RunState) {
        let wait = async {
            while self
                .states
                .recv()
                .await
                .is_some_and(|told| told != (session, state))
            {}
        };
        tokio::time::timeout(LONG, wait)
            .await
            .expect("the state does not come");
    }

    /// Whether this state has been announced; forgets all announcements so far.
    pub(super) fn tells(&mut self, session: SessionId, state: RunState) -> bool {
        let mut told = false;
        while let Ok(one) = self.states.try_recv() {
            told |= one == (session, state);
        }
        told
    }

    /// Lets the paused clock run to check that something does not happen. Takes no wall time.
    pub(super) async fn pass(&self, time: Duration) {
        tokio::time::sleep_until(tokio::time::Instant::now() + time).await;
    }

    pub(super) async fn stats(&self) -> SupervisorStats {
        self.get(|done| SupervisorMsg::Stats { done }).await
    }

    pub(super) async fn get<T: Send + 'static>(&self, message: impl FnOnce(Done<T>) -> SupervisorMsg) -> T {
        let (done, answer) = Done::channel();
        self.supervisor.cast(message(done)).unwrap();
        tokio::time::timeout(LONG, answer).await.unwrap().unwrap()
    }

    pub(super) async fn events(&self, session: SessionId) -> Vec<Event> {
        let page = self.strings.log.load(session, Range::after(0)).await.unwrap();
        page.events
            .iter()
            .map(|(_, line)| EncodedEvent::decode(line).unwrap())
            .collect()
    }

    pub(super) async fn kinds(&self, session: SessionId) -> Vec<&'static str> {
        self.events(session)
            .await
            .iter()
            .map(|event| event.body.kind())
            .collect()
    }

    pub(super) fn verdict(&self, tool: &str, kind: Option<VerdictKind>) {
        self.strings
            .verdicts
            .lock()
            .unwrap()
            .insert(tool.to_owned(), kind);
    }

    pub(super) fn trick(&self, trick: Trick) {
        self.strings.tricks.lock().unwrap().push_back(trick);
    }

    /// From now on, delegated tasks become sessions.
    pub(super) fn make_subagents(&self, source: Box<dyn agentd_actor_kit::SubagentSource>) {
        self.args.services.subagents.open(source);
    }

    pub(super) fn panic_at_starts(&self, starts: u32) {
        self.puppets.panics.store(starts, Ordering::SeqCst);
    }
}

thread_local! {
    /// The directory of a test's sessions. Slots for file work are per directory: in a shared one, a test with a paused
    /// clock could find the slots taken by another test, and its clock does not advance while it waits.
    static WORKDIR: TempDir = tempfile::tempdir().unwrap();
}

pub(super) fn creation(limits: LoopLimits, prompt: Option<&str>) -> Command {
    let created = SessionCreated {
        title: "t".into(),
        project: "p".into(),
        workdir: WORKDIR.with(|dir| dir.path().display().to_string()),
        model: "scripted".into(),
        mode: PermissionMode::Default,
        agent: None,
        labels: BTreeMap::new(),
        requires: [].into(),
        parent: None,
        limits,
        budget: Budget::default(),
        tools: vec!["Read".into(), "Bash".into(), "Task".into()],
        system_prompt: None,
        append_system_prompt: None,
        rules: Vec::new(),
        lineage: None,
        prompt: None,
        derived_title: false,
        workspace: None,
    };
    Command::Create {
        created: Box::new(created),
        first: prompt.map(input),
    }
}

pub(super) fn input(text: &str) -> NewInput {
    NewInput {
        content: vec![Block::text(text)],
        delivery: None,
        key: None,
        model: None,
    }
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

pub(super) const CANCEL: Command = Command::CancelTurn {
    expect: None,
    reason: None,
    jobs: false,
};

/// I3: every call that the model requested in a finished turn has exactly one result.
pub(super) fn assert_every_call_has_one_result(events: &[Event]) {
    let mut results: BTreeMap<ToolCallId, u32> = BTreeMap::new();
    for event in events {
        match &event.body {
            EventBody::ToolProposed(proposed) => drop(results.insert(proposed.tool_call, 0)),
            EventBody::ToolFinished(finished) => *results.get_mut(&finished.tool_call).unwrap() += 1,
            _ => {}
        }
    }
    assert!(results.values().all(|n| *n == 1), "{results:?}");
}

/// I2: 1, 2, 3, ….
pub(super) fn assert_gap_free(events: &[Event]) {
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
}
