use super::*;
use crate::actor::{ClientArgs, ModelClient};
use crate::call::{ModelCall, spawn};
use agentd_actor_kit::{Ask, Clock, Handle, Hold, Lane, Pointer, ProviderStatus};
use agentd_protocol::{Block, Delta, SessionId, StopReason, Timestamp};
use agentd_provider::{Credential, Secret};
use agentd_provider::{
    Deadlines, Dialect, ModelSpec, RequestBody, Script, ScriptedFailure, ScriptedTurn, http_client,
};
use agentd_settings::{RatesConfig, SchedulerConfig};
use ractor::{Actor, ActorCell, ActorProcessingErr, SupervisionEvent};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The events of a session, in the order in which it noticed them.
#[derive(Debug)]
enum Noticed {
    Message(Box<SessionMsg>),
    Failed(String),
    Ended,
}

/// A stand-in for the session loop: it forwards what it receives.
struct Puppet;

impl Actor for Puppet {
    type Msg = SessionMsg;
    type State = mpsc::UnboundedSender<Noticed>;
    type Arguments = mpsc::UnboundedSender<Noticed>;

    async fn pre_start(
        &self,
        _: ActorRef<SessionMsg>,
        heard: Self::State,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(heard)
    }

    async fn handle(
        &self,
        _: ActorRef<SessionMsg>,
        message: SessionMsg,
        heard: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let _ = heard.send(Noticed::Message(Box::new(message)));
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<SessionMsg>,
        event: SupervisionEvent,
        heard: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(_, error) => drop(heard.send(Noticed::Failed(error.to_string()))),
            SupervisionEvent::ActorTerminated(..) => drop(heard.send(Noticed::Ended)),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

struct World {
    session: ActorRef<SessionMsg>,
    heard: mpsc::UnboundedReceiver<Noticed>,
    client: Handle<ModelMsg>,
    ended: bool,
}

impl World {
    async fn new(permits: u32) -> Self {
        Self::with(permits, &[]).await
    }

    async fn with(permits: u32, credentials: &[&str]) -> Self {
        let (tx, heard) = mpsc::unbounded_channel();
        let (session, _) = Actor::spawn(None, Puppet, tx).await.unwrap();
        let clock = Clock::virtual_from(Timestamp(1_000_000));
        let args = ClientArgs {
            provider: "p".into(),
            permits,
            share: None,
            credentials: credentials.iter().map(|&name| name.to_owned()).collect(),
            rates: RatesConfig::default(),
            scheduler: SchedulerConfig::default(),
            patience_ms: 30_000,
            clock,
        };
        let client = ModelClient::start(args, session.get_cell()).await.unwrap();
        Self {
            session,
            heard,
            client: Handle::fixed("model client", client),
            ended: false,
        }
    }

    fn start(&self, spec: ModelSpec, attempt: u32) -> CallStart {
        CallStart {
            to: self.session.clone(),
            ask: Ask {
                session: SessionId::NIL,
                model: spec.model.clone(),
                credential: None,
                group: String::new(),
                lane: Lane::Interactive,
                input_tokens: 100,
                output_tokens: 100,
                insists: false,
            },
            call: CallId::NIL,
            attempt,
            spec: Arc::new(spec),
            client: self.client.clone(),
            http: http_client(Duration::from_secs(5)).unwrap(),
            body: RequestBody::default(),
            tools: Vec::new(),
            messages: Vec::new(),
        }
    }

    async fn begin(&self, spec: ModelSpec, attempt: u32) -> ActorCell {
        ModelCall::start(self.start(spec, attempt), self.session.get_cell())
            .await
            .unwrap()
    }

    async fn puppet<C: Caller>(&self, caller: C) -> ActorCell {
        spawn(
            caller,
            self.start(scripted(turn("x")), 1),
            self.session.get_cell(),
        )
        .await
        .unwrap()
    }

    async fn next(&mut self) -> Noticed {
        let noticed = self.heard.recv().await.unwrap();
        self.ended |= matches!(noticed, Noticed::Ended);
        noticed
    }

    /// The next event of a call, with its attempt; other messages are skipped.
    async fn event(&mut self) -> (u32, CallEvent) {
        loop {
            if let Noticed::Message(message) = self.next().await
                && let SessionMsg::Model { attempt, event, .. } = *message
            {
                return (attempt, event);
            }
        }
    }

    async fn result(&mut self) -> Result<ModelAnswer, ModelFailure> {
        loop {
            match self.event().await.1 {
                CallEvent::Answered(answer) => return Ok(*answer),
                CallEvent::Failed(failure) => return Err(failure),
                CallEvent::Waiting(_) | CallEvent::Granted { .. } | CallEvent::Delta(..) => {}
            }
        }
    }

    async fn status(&self) -> ProviderStatus {
        self.client
            .call(Duration::from_secs(5), |done| ModelMsg::Status { done })
            .await
            .unwrap()
    }

    /// Polls until all permits are back; the status arrives after every message sent before it.
    async fn all_back(&self) {
        while self.status().await.running > 0 {
            tokio::task::yield_now().await;
        }
    }
}

fn turn(text: &str) -> ScriptedTurn {
    ScriptedTurn {
        text: text.into(),
        usage: Some(Usage::default()),
        ..ScriptedTurn::default()
    }
}

fn scripted(turn: ScriptedTurn) -> ModelSpec {
    ModelSpec::scripted(
        "s",
        Arc::new(Script {
            turns: vec![turn],
            ..Script::default()
        }),
    )
}

fn failing(class: FailureClass, retry_after_ms: Option<u64>) -> ModelSpec {
    let fail = ScriptedFailure {
        class,
        message: "later".into(),
        retry_after_ms,
        attempts: 1,
    };
    scripted(ScriptedTurn {
        fail: Some(fail),
        ..turn("ok")
    })
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_granted_streams_answers_and_ends() {
    let mut world = World::new(1).await;
    world
        .begin(
            scripted(turn("Hello there, and welcome to a streamed answer.")),
            3,
        )
        .await;
    assert!(matches!(world.event().await, (3, CallEvent::Granted { .. })));
    let mut text = String::new();
    let answer = loop {
        match world.event().await.1 {
            CallEvent::Delta(Delta::Text(fragment), _) => {
                assert_eq!((fragment.offset, fragment.attempt), (text.len() as u64, 3));
                text.push_str(&fragment.text);
            }
            CallEvent::Answered(answer) => break *answer,
            other => panic!("{other:?}"),
        }
    };
    let expected = ModelAnswer {
        content: vec![Block::text(text)],
        stop_reason: StopReason::EndTurn,
        usage: Usage::default(),
        cost_usd: None,
        latency: Latency::default(),
        credential: None,
        reading: agentd_protocol::Reading::default(),
    };
    assert_eq!(answer, expected);
    // Supervision events overtake messages, so the end may be noticed before the answer.
    while !world.ended {
        world.next().await;
    }
    world.all_back().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_with_its_class_and_its_wait() {
    let mut world = World::new(1).await;
    world.begin(failing(FailureClass::RateLimited, Some(70)), 1).await;
    let failure = ModelFailure {
        retry_after_ms: Some(70),
        ..ModelFailure::new(FailureClass::RateLimited, "later")
    };
    assert_eq!(world.result().await, Err(failure));
}

#[tokio::test(start_paused = true)]
async fn a_servers_wait_holds_back_everybody_else() {
    let mut world = World::new(4).await;
    let started = Instant::now();
    world
        .begin(failing(FailureClass::RateLimited, Some(5_000)), 1)
        .await;
    assert!(world.result().await.is_err());
    let status = world.status().await;
    assert_eq!(status.paused_until, Some(Timestamp(1_005_000)));
    world.begin(scripted(turn("hi")), 1).await;
    assert!(matches!(world.event().await.1, CallEvent::Waiting(_)));
    assert!(matches!(world.event().await.1, CallEvent::Granted { .. }));
    assert_eq!(started.elapsed().as_secs(), 5);
    assert!(world.result().await.is_ok());
}

fn called(answer: AttemptResult) -> Called {
    Called {
        answer,
        rates: Rates::default(),
        spent: None,
    }
}

struct Panics;

impl Caller for Panics {
    async fn call(&self, _: Request<'_>, _: &mut Pipe) -> Called {
        panic!("a bug in the decoder")
    }
}

struct Hangs;

impl Caller for Hangs {
    async fn call(&self, _: Request<'_>, _: &mut Pipe) -> Called {
        pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn i6_a_panic_gives_the_permit_back_and_is_told() {
    let mut world = World::new(1).await;
    world.puppet(Panics).await;
    let failed = loop {
        if let Noticed::Failed(why) = world.next().await {
            break why;
        }
    };
    assert!(failed.contains("a bug in the decoder"), "{failed}");
    world.all_back().await;
    world.begin(scripted(turn("still there")), 2).await;
    assert!(world.result().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn i6_a_kill_gives_the_permit_to_the_next_waiter() {
    let mut world = World::new(1).await;
    let stuck = world.puppet(Hangs).await;
    assert!(matches!(world.event().await.1, CallEvent::Granted { .. }));
    world.begin(scripted(turn("my turn")), 2).await;
    assert!(matches!(world.event().await, (2, CallEvent::Waiting(_))));
    stuck.kill();
    assert!(matches!(world.event().await, (2, CallEvent::Granted { .. })));
    assert!(world.result().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn i6_a_waiter_that_is_killed_leaves_its_place() {
    let mut world = World::new(1).await;
    let stuck = world.puppet(Hangs).await;
    assert!(matches!(world.event().await.1, CallEvent::Granted { .. }));
    let waiter = world.begin(scripted(turn("never")), 2).await;
    assert!(matches!(world.event().await, (2, CallEvent::Waiting(_))));
    waiter.kill();
    stuck.kill();
    world.all_back().await;
    assert_eq!(world.status().await.waiting, 0);
    world.begin(scripted(turn("next")), 3).await;
    assert!(matches!(world.event().await, (3, CallEvent::Granted { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_outlives_a_restart_of_its_client() {
    let mut world = World::new(1).await;
    let pointer = Pointer::new("model client");
    let client = world.client.actor().unwrap();
    world.client = pointer.handle();
    world.begin(scripted(turn("patience")), 1).await;
    sleep(CLIENT_PAUSE * 3).await;
    pointer.set(client);
    assert!(world.result().await.is_ok());
}

struct Floods;

impl Caller for Floods {
    async fn call(&self, _: Request<'_>, sink: &mut Pipe) -> Called {
        for _ in 0..100 {
            sink.send(ModelEvent::TextDelta {
                block: 0,
                text: "x".repeat(4_096),
            })
            .await;
        }
        called(Err(ModelError::new(FailureClass::Transient, "the flood is over")))
    }
}

#[tokio::test(start_paused = true)]
async fn i6_a_slow_session_is_not_flooded() {
    let mut world = World::new(1).await;
    world.puppet(Floods).await;
    assert!(matches!(world.event().await.1, CallEvent::Granted { .. }));
    let mut held = Vec::new();
    for _ in 0..CREDITS {
        held.push(world.event().await.1);
    }
    let more = timeout(Duration::from_secs(60), world.event()).await;
    assert!(more.is_err(), "a delta came without a credit: {more:?}");
    drop(held);
    let mut bytes = CREDITS * 4_096;
    let end = loop {
        match world.event().await.1 {
            CallEvent::Delta(Delta::Text(fragment), _) => bytes += fragment.text.len(),
            other => break other,
        }
    };
    assert!(matches!(end, CallEvent::Failed(failure) if failure.message == "the flood is over"));
    assert_eq!(bytes, 100 * 4_096);
}

#[tokio::test]
async fn a_killed_attempt_drops_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut world = World::new(1).await;
    let spec = ModelSpec {
        dialect: Dialect::OpenaiChat,
        base_url: format!("http://{}/v1", listener.local_addr().unwrap()),
        deadlines: Deadlines::default(),
        ..scripted(turn(""))
    };
    let worker = world.begin(spec, 1).await;
    let (mut socket, _) = listener.accept().await.unwrap();
    let chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{chunk}");
    socket.write_all(answer.as_bytes()).await.unwrap();
    while !matches!(world.event().await.1, CallEvent::Delta(..)) {}
    worker.kill();
    let mut rest = Vec::new();
    let end = timeout(Duration::from_secs(10), socket.read_to_end(&mut rest)).await;
    assert!(matches!(end, Ok(Ok(_) | Err(_))), "the connection stayed open");
    world.all_back().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_says_where_it_stands() {
    let mut world = World::new(1).await;
    let stuck = world.puppet(Hangs).await;
    assert!(matches!(world.event().await.1, CallEvent::Granted { .. }));
    world.begin(scripted(turn("second")), 2).await;
    let place = match world.event().await {
        (2, CallEvent::Waiting(place)) => place,
        other => panic!("{other:?}"),
    };
    let expected = QueuePosition {
        position: 1,
        of: 1,
        eta_ms: None,
        hold: None,
    };
    assert_eq!(place, Some(expected));
    let again = timeout(Duration::from_secs(60), world.event()).await;
    assert!(again.is_err(), "said again though nothing changed: {again:?}");
    stuck.kill();
    assert!(matches!(world.event().await, (2, CallEvent::Granted { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_short_pause_is_waited_for_and_a_long_one_is_refused_with_its_end() {
    let mut world = World::new(4).await;
    world
        .begin(failing(FailureClass::RateLimited, Some(20_000)), 1)
        .await;
    assert!(world.result().await.is_err());
    world.begin(scripted(turn("hi")), 2).await;
    match world.event().await.1 {
        CallEvent::Waiting(Some(place)) => assert_eq!(place.hold, Some(Hold::Rate)),
        other => panic!("{other:?}"),
    }
    assert!(world.result().await.is_ok());
    world
        .begin(failing(FailureClass::RateLimited, Some(90_000)), 1)
        .await;
    assert!(world.result().await.is_err());
    world.begin(scripted(turn("hi")), 4).await;
    let refused = world.result().await.unwrap_err();
    let told = (refused.class, refused.refused, refused.retry_after_ms);
    assert_eq!(
        told,
        (FailureClass::RateLimited, true, Some(90_000)),
        "{}",
        refused.message
    );
}

fn with_keys(spec: ModelSpec, names: &[&str]) -> ModelSpec {
    let key = |name: &&str| Credential {
        name: (*name).to_owned(),
        found_in: "here".to_owned(),
        secret: Secret::new("k"),
    };
    ModelSpec {
        credentials: names.iter().map(key).collect(),
        ..spec
    }
}

#[tokio::test(start_paused = true)]
async fn another_credential_takes_over_from_one_that_is_refused() {
    let mut world = World::with(4, &["a", "b"]).await;
    let spec = with_keys(failing(FailureClass::Auth, None), &["a", "b"]);
    world.begin(spec, 1).await;
    let failure = world.result().await.unwrap_err();
    assert_eq!(failure.credential.as_deref(), Some("a"));
    assert_eq!(failure.other_credential.as_deref(), Some("b"));
    assert_eq!(failure.retry_after_ms, None);
    let spec = with_keys(scripted(turn("hi")), &["a", "b"]);
    let mut start = world.start(spec, 2);
    start.ask.credential = Some("a".to_owned());
    ModelCall::start(start, world.session.get_cell()).await.unwrap();
    let answer = world.result().await.unwrap();
    assert_eq!(
        answer.credential.as_deref(),
        Some("b"),
        "the asked one is not well"
    );
}

/// Sends a piece when the semaphore permits, and never ends.
struct Streams(Arc<Semaphore>);

impl Caller for Streams {
    async fn call(&self, _: Request<'_>, sink: &mut Pipe) -> Called {
        let _ = self.0.acquire().await;
        sink.send(ModelEvent::TextDelta {
            block: 0,
            text: "x".repeat(4_096),
        })
        .await;
        pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_streams_lets_the_others_go_before_it_ends() {
    let mut world = World::new(4).await;
    world.begin(failing(FailureClass::Auth, None), 1).await;
    assert!(world.result().await.is_err());
    sleep(Duration::from_secs(60)).await;
    let go = Arc::new(Semaphore::new(0));
    world.puppet(Streams(Arc::clone(&go))).await;
    assert!(matches!(world.event().await.1, CallEvent::Granted { .. }));
    world.begin(scripted(turn("behind the probe")), 2).await;
    assert!(matches!(world.event().await, (2, CallEvent::Waiting(_))));
    go.add_permits(1);
    while !matches!(world.event().await, (2, CallEvent::Granted { .. })) {}
    assert!(world.result().await.is_ok());
}

#[tokio::test]
async fn an_answer_is_recorded_where_its_model_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recorded.toml");
    let mut world = World::new(1).await;
    let spec = ModelSpec {
        record: Some(file.clone()),
        ..scripted(turn("remember me"))
    };
    world.begin(spec, 1).await;
    assert!(world.result().await.is_ok());
    let recorded = std::fs::read_to_string(file).unwrap();
    assert!(recorded.contains("remember me"), "{recorded}");
}
