//! An api over the real memory store and the real feed. The supervisor is played by an actor that writes what it is told.

use agentd_actor_kit::{
    Clock, FeedMsg, GateMsg, Handle, Pointer, Routed, StoreMsg, SupervisorMsg, SupervisorStats,
};
use agentd_api::{Api, NodeFacts, NodeView, Parts, StopRequest};
use agentd_protocol::*;
use agentd_session_store::{Feed, FeedArgs, FeedLimits, OnFatal, SessionStore, StoreArgs, StoreLimits};
use agentd_settings::Settings;
use agentd_store::{Append, Backend, EncodedEvent, IdempotencyKey, Options, Outcome};
use agentd_tools::Registry;
use agentd_turn::{Command, NewInput, Reply};
use async_trait::async_trait;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// Everything a test holds.
pub(crate) struct Harness {
    pub(crate) api: Arc<Api>,
    pub(crate) log: Log,
    pub(crate) feed: Handle<FeedMsg>,
    pub(crate) gate: Pointer<GateMsg>,
    pub(crate) supervisor: Pointer<SupervisorMsg>,
    pub(crate) played: Arc<Mutex<Played>>,
    pub(crate) stop: mpsc::Receiver<StopRequest>,
    pub(crate) dir: tempfile::TempDir,
}

/// What the played supervisor saw, and what it is to say.
#[derive(Debug, Default)]
pub(crate) struct Played {
    pub(crate) routed: u64,
    pub(crate) overlay: BTreeMap<SessionId, Status>,
    pub(crate) faulted: Vec<SessionId>,
    pub(crate) evicted: Vec<SessionId>,
}

/// Writes to sessions as their owner would.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    store: Handle<StoreMsg>,
    backend: Arc<dyn Backend>,
    clock: Clock,
}

impl Log {
    /// Appends facts; `edit` changes the list row with them.
    pub(crate) async fn write(
        &self,
        session: SessionId,
        by: &Principal,
        bodies: Vec<EventBody>,
        keys: Vec<IdempotencyKey>,
        edit: impl FnOnce(&mut Summary),
    ) -> Result<Seq, Outcome> {
        let row = self.backend.row(session).await.unwrap();
        let (head, mut summary) = row.map_or_else(|| (0, blank(session)), |row| (row.head, row.summary));
        let mut append = Append::new(session, 1, head, self.clock.stamp().append());
        for (seq, body) in (head + 1..).zip(bodies) {
            let event = Event {
                v: 1,
                session,
                seq,
                at: self.clock.now(),
                by: by.clone(),
                turn: None,
                body,
            };
            append.events.push(EncodedEvent::encode(&event).unwrap());
            summary.seq = seq;
        }
        edit(&mut summary);
        append.summary = Some(summary);
        append.keys = keys;
        let done = |done| StoreMsg::Append { append, done };
        match self
            .store
            .call(std::time::Duration::from_secs(5), done)
            .await
            .unwrap()
        {
            Outcome::Committed { head, .. } | Outcome::Duplicate { head } => Ok(head),
            other => Err(other),
        }
    }

    /// A fact that is only there to be counted.
    pub(crate) async fn note(&self, session: SessionId, text: &str) -> Seq {
        let note = NoteInjected {
            kind: NoteKind::Guard,
            text: text.to_owned(),
        };
        self.write(
            session,
            &Principal::agentd(),
            vec![note.into()],
            Vec::new(),
            |_| {},
        )
        .await
        .unwrap()
    }

    /// Asks a person.
    pub(crate) async fn ask(&self, session: SessionId, title: &str) -> ApprovalId {
        let approval = self.clock.stamp().approval();
        let asked = ApprovalAsked {
            approval,
            kind: ApprovalKind::Tool,
            tool_call: None,
            title: title.to_owned(),
            detail: "cargo test".to_owned(),
            choices: Vec::new(),
            scopes: vec![Scope::Once],
            expires_at: None,
            grant: None,
        };
        let open = OpenApproval {
            approval,
            kind: asked.kind,
            session,
            tool_call: None,
            tool: Some("Bash".to_owned()),
            title: asked.title.clone(),
            detail: asked.detail.clone(),
            choices: Vec::new(),
            scopes: asked.scopes.clone(),
            asked_at: self.clock.now(),
            expires_at: None,
            grant: None,
        };
        let edit = |row: &mut Summary| {
            row.open_approvals.push(open);
            row.status.state = RunState::Waiting(WaitReason::Approval);
        };
        self.write(
            session,
            &Principal::agentd(),
            vec![asked.into()],
            Vec::new(),
            edit,
        )
        .await
        .unwrap();
        approval
    }

    /// Changes only the list row.
    pub(crate) async fn edit(&self, session: SessionId, edit: impl FnOnce(&mut Summary)) {
        self.write(session, &Principal::agentd(), Vec::new(), Vec::new(), edit)
            .await
            .unwrap();
    }
}

fn blank(session: SessionId) -> Summary {
    let at = Timestamp(1_763_629_200_123);
    Summary {
        session,
        name: String::new(),
        status: Status {
            state: RunState::Idle,
            reason: "nothing to do".into(),
            since: at,
            until: None,
            attempt: None,
        },
        model: "scripted".into(),
        mode: PermissionMode::Default,
        workdir: "/".into(),
        labels: Labels::new(),
        seq: 0,
        steps: 0,
        usage: Usage::default(),
        cost_usd: 0.0,
        created_at: at,
        updated_at: at,
        parent: None,
        turn: None,
        open_approvals: Vec::new(),
        queue: Vec::new(),
        budget: Budget::default(),
        last_error: None,
        wake_at: None,
        resumable: false,
    }
}

#[derive(Debug)]
struct Supervisor;

#[derive(Debug)]
struct Player {
    log: Log,
    played: Arc<Mutex<Played>>,
}

impl Player {
    async fn routed(
        &self,
        Routed {
            session,
            command,
            by,
            key,
            ..
        }: &mut Routed,
    ) -> Result<Reply, Fault> {
        let (session, stamp) = (*session, self.log.clock.stamp());
        match command.as_ref().clone() {
            Command::Create { created, first } => {
                let input = first.as_ref().map(|_| stamp.clone().input());
                let mut bodies: Vec<EventBody> = vec![created.as_ref().clone().into()];
                bodies.extend(first.zip(input).map(|(first, input)| accepted(first, input)));
                let seq = bodies.len() as Seq;
                let name = created.title.clone();
                let keys = kept(key, &json!(Created { session, name, input, seq }));
                let edit = |row: &mut Summary| {
                    row.name.clone_from(&created.title);
                    row.model.clone_from(&created.model);
                    row.labels.clone_from(&created.labels);
                    row.workdir.clone_from(&created.workdir);
                };
                let seq = self
                    .log
                    .write(session, by, bodies, keys, edit)
                    .await
                    .map_err(lost)?;
                Ok(Reply::Created { input, seq })
            }
            Command::Send(new) => {
                let input = stamp.clone().input();
                let seq = self.log.backend.row(session).await.unwrap().unwrap().head + 1;
                let keys = kept(key, &json!(Sent { input, seq }));
                let bodies = vec![accepted(new, input)];
                let seq = self
                    .log
                    .write(session, by, bodies, keys, |_| {})
                    .await
                    .map_err(lost)?;
                Ok(Reply::Sent { input, seq })
            }
            Command::Decide {
                approval,
                decision,
                scope,
                answer,
                message,
            } => {
                let row = self.log.backend.row(session).await.unwrap().unwrap();
                if !row
                    .summary
                    .open_approvals
                    .iter()
                    .any(|open| open.approval == approval)
                {
                    return Err(Fault::conflict("approval_decided", "it was decided already"));
                }
                let decided = ApprovalDecided {
                    approval,
                    decision,
                    answer,
                    scope,
                    message,
                };
                let edit = |row: &mut Summary| row.open_approvals.retain(|open| open.approval != approval);
                let seq = self
                    .log
                    .write(session, by, vec![decided.into()], Vec::new(), edit)
                    .await
                    .map_err(lost)?;
                Ok(Reply::Done { seq })
            }
            Command::Update { labels, .. } => {
                let updated = SessionUpdated {
                    title: None,
                    model: None,
                    mode: None,
                    labels,
                    budget: None,
                };
                let labels = updated.labels.clone();
                let edit = |row: &mut Summary| row.labels = labels.unwrap_or_default();
                let seq = self
                    .log
                    .write(session, by, vec![updated.into()], Vec::new(), edit)
                    .await
                    .map_err(lost)?;
                Ok(Reply::Done { seq })
            }
            Command::Close { reason, .. } => {
                let closed = SessionClosed { reason };
                let edit = |row: &mut Summary| row.status.state = RunState::Closed;
                let seq = self
                    .log
                    .write(session, by, vec![closed.into()], Vec::new(), edit)
                    .await
                    .map_err(lost)?;
                Ok(Reply::Done { seq })
            }
            Command::CancelTurn { .. } => Err(Fault::conflict("no_turn", "no turn runs")),
            Command::CancelInput(_) | Command::Pause { .. } | Command::Resume { .. } => {
                Ok(Reply::Done { seq: 1 })
            }
        }
    }
}

fn accepted(new: NewInput, input: InputId) -> EventBody {
    let NewInput {
        content,
        delivery,
        key,
        model,
    } = new;
    InputAccepted {
        input,
        key,
        delivery: delivery.unwrap_or(Delivery::Start),
        content,
        model,
        agent: None,
    }
    .into()
}

fn kept(key: &mut Option<IdempotencyKey>, answer: &Value) -> Vec<IdempotencyKey> {
    let mut keys: Vec<IdempotencyKey> = key.take().into_iter().collect();
    keys.iter_mut()
        .for_each(|key| key.answer = answer.to_string());
    keys
}

fn lost(outcome: Outcome) -> Fault {
    match outcome {
        Outcome::KeyTaken { .. } => Fault::unavailable("retry", "somebody was faster"),
        other => Fault::storage("lost", format!("{other:?}")),
    }
}

impl Actor for Supervisor {
    type Msg = SupervisorMsg;
    type State = Player;
    type Arguments = Player;

    async fn pre_start(
        &self,
        _: ActorRef<SupervisorMsg>,
        args: Player,
    ) -> Result<Player, ActorProcessingErr> {
        Ok(args)
    }

    async fn handle(
        &self,
        _: ActorRef<SupervisorMsg>,
        msg: SupervisorMsg,
        player: &mut Player,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            SupervisorMsg::Route(mut routed) => {
                player.played.lock().unwrap().routed += 1;
                let reply = player.routed(&mut routed).await;
                routed.done.answer(reply);
            }
            SupervisorMsg::Overlay { done } => done.answer(player.played.lock().unwrap().overlay.clone()),
            SupervisorMsg::Stats { done } => done.answer(SupervisorStats {
                hot: 2,
                ..SupervisorStats::default()
            }),
            SupervisorMsg::Revive { session, done } => {
                done.answer(player.played.lock().unwrap().faulted.contains(&session));
            }
            SupervisorMsg::Evict { session, done } => {
                player.played.lock().unwrap().evicted.push(session);
                done.answer(());
            }
            _ => {}
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Gate;

impl Actor for Gate {
    type Msg = GateMsg;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<GateMsg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<GateMsg>,
        msg: GateMsg,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            GateMsg::WhollyDenied { tools, rules, done } => {
                let denied = |tool: &String| rules.contains(&format!("deny {tool}"));
                done.answer(tools.into_iter().filter(denied).collect());
            }
            GateMsg::Rules { done } => done.answer(vec!["built-in: deny Bash(sudo:*)".to_owned()]),
            _ => {}
        }
        Ok(())
    }
}

#[derive(Debug)]
struct View;

#[async_trait]
impl NodeView for View {
    async fn models(&self) -> Vec<ModelStatus> {
        ["scripted", "sonnet"].map(model).to_vec()
    }

    fn restarts(&self) -> u64 {
        3
    }
}

fn model(name: &str) -> ModelStatus {
    ModelStatus {
        name: name.to_owned(),
        provider: "scripted".into(),
        model: "builtin".into(),
        dialect: "scripted".into(),
        usable: true,
        note: String::new(),
        default: name == "scripted",
        running: 0,
        waiting: 0,
        paused_until: None,
    }
}

impl Harness {
    /// Everything with the default settings.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Everything with changed settings.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let backend = agentd_store::open("memory:", dir.path(), Options::default()).unwrap();
        let feed_args = FeedArgs {
            committed: backend.committed(),
            limits: FeedLimits::default(),
        };
        let (feed, _) = Actor::spawn(None, Feed, feed_args).await.unwrap();
        let feed = Handle::fixed("the feed", feed);
        let store_args = StoreArgs {
            backend: Arc::clone(&backend),
            feed: feed.clone(),
            limits: StoreLimits::default(),
            on_fatal: OnFatal::new(|_| {}),
        };
        let (store, _) = Actor::spawn(None, SessionStore, store_args).await.unwrap();
        let store = Handle::fixed("the store", store);
        let clock = Clock::System;
        let log = Log {
            store: store.clone(),
            backend: Arc::clone(&backend),
            clock,
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
        let parts = Parts {
            supervisor: supervisor.handle(),
            store,
            feed: feed.clone(),
            gate: gate.handle(),
            backend,
            view: Arc::new(View),
            registry: Registry::builtin(&settings.tools),
            settings: Arc::new(settings),
            clock,
            facts: NodeFacts {
                node: "a1".into(),
                version: "0.1.0".into(),
                pid: 7,
                started_at: Timestamp(1_763_629_200_123),
                socket: "/run/agentd.sock".into(),
                store: "memory:".into(),
                data_dir: "/data".into(),
                model: "scripted (a test)".into(),
            },
            stop: stop_tx,
        };
        Self {
            api: Arc::new(Api::new(parts)),
            log,
            feed,
            gate,
            supervisor,
            played,
            stop,
            dir,
        }
    }

    /// Who calls.
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

    /// A session with a title.
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

    /// A directory that is there.
    pub(crate) fn workdir(&self) -> String {
        self.dir.path().to_str().unwrap().to_owned()
    }
}
