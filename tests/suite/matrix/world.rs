//! One cell's daemon, with as many restarts as needed, and the conditions at the end.
#![expect(
    clippy::panic,
    reason = "these are tests; support for them fails by panicking"
)]

use super::{Action, Cell};
use agentd_bench::model_server::ModelServer;
use agentd_client::{Client, ClientError, ConnectOptions, Push};
use agentd_protocol::{
    Block, CreateParams, Created, EndReason, Event, EventBody, PermissionMode, ResumeParams, RunState, Seq,
    SessionId,
};
use agentd_tests::{
    Access, Daemon, DaemonOptions, Logs, Way, check_audit, check_effects, eventually, try_log, within,
    working_in,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How long a cell tries to make progress.
const PATIENCE: Duration = Duration::from_secs(180);
/// Sessions that work in addition to the scenario's.
const BYSTANDERS: usize = 2;

/// A daemon with a fault, and everything that it acknowledged.
pub(super) struct World {
    pub(super) dir: Arc<TempDir>,
    daemon: Daemon,
    client: Option<Client>,
    said: String,
    lives: u32,
    /// Records an answer: this event is durable (I1).
    promised: Vec<(SessionId, Seq, &'static str)>,
    bystanders: Vec<String>,
    viewers: Vec<Viewer>,
    _server: ModelServer,
}

impl World {
    /// Starts the daemon of a cell, and the additional sessions.
    pub(super) async fn begin(cell: &Cell) -> Self {
        let server = ModelServer::start(false).await.expect("a model server");
        let dir = tempfile::Builder::new().prefix("agentd-m").tempdir();
        let dir = Arc::new(dir.expect("a temporary directory"));
        let options = DaemonOptions {
            model_url: Some(server.url()),
            config: cell.scenario.config(dir.path()).await,
            faults: Some(cell.faults()),
            ..DaemonOptions::default()
        };
        let mut world = Self {
            daemon: Daemon::launch(Arc::clone(&dir), options),
            dir,
            client: None,
            said: String::new(),
            lives: 1,
            promised: Vec::new(),
            bystanders: Vec::new(),
            viewers: Vec::new(),
            _server: server,
        };
        for n in 0..BYSTANDERS {
            let name = format!("beside{n}");
            let plan = format!("plan:{name} steps=2 command=echo_{{n}}_>>_marks;");
            let session = world.create(&name, &plan, |_| {}).await;
            world.bystanders.push(session);
        }
        world
    }

    /// Tries until it succeeds, over crashes and restarts of the daemon.
    pub(super) async fn reach<T>(
        &mut self,
        what: &str,
        goal: impl AsyncFn(&Client) -> Result<T, String>,
    ) -> T {
        let mut ticks = interval(Duration::from_millis(25));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deadline = Instant::now() + PATIENCE;
        let mut last = String::new();
        while Instant::now() < deadline {
            ticks.tick().await;
            let client = match self.client().await {
                Ok(client) => client,
                Err(why) => {
                    last = why;
                    continue;
                }
            };
            match within(what, goal(&client)).await {
                Ok(done) => return done,
                Err(why) => last = why,
            }
            if client.lost().is_some() {
                self.client = None;
            }
        }
        panic!("{what}: not reached: {last}\n{}{}", self.said, self.daemon.said());
    }

    async fn client(&mut self) -> Result<Client, String> {
        if self.daemon.is_over() {
            self.client = None;
            self.revive().await;
        }
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        if !self.daemon.ready_or_over().await {
            return Err("the daemon ended while it started".to_owned());
        }
        let (socket, options) = (self.daemon.socket(), ConnectOptions::default());
        let client = Client::connect(&socket, &options).await;
        let client = client.map_err(|error| error.to_string())?;
        self.client = Some(client.clone());
        Ok(client)
    }

    async fn revive(&mut self) {
        let status = self.daemon.ended().await;
        self.said.push_str(&self.daemon.said());
        assert!(
            self.lives < 3,
            "it ended again without a fault: {status}\n{}",
            self.said
        );
        let by_itself = status.code();
        assert!(
            by_itself.is_none_or(|code| code == 70 || code == 1),
            "a failure exits with 70, at its start with 1, not with {status}"
        );
        self.lives += 1;
        self.daemon = self.daemon.again();
    }

    /// Where a session's commands write their marks.
    pub(super) fn workdir(&self, name: &str) -> PathBuf {
        PathBuf::from(self.daemon.workdir(name))
    }

    /// A session with a first input and its own key, named after its directory; and its viewer.
    pub(super) async fn create(
        &mut self,
        name: &str,
        prompt: &str,
        more: impl Fn(&mut CreateParams),
    ) -> String {
        let mut params = CreateParams {
            prompt: Some(vec![Block::text(prompt)]),
            title: Some(name.to_owned()),
            workdir: self.daemon.workdir(name),
            mode: Some(PermissionMode::Yolo),
            model: Some("claude".to_owned()),
            key: Some(format!("create {name}")),
            ..CreateParams::default()
        };
        more(&mut params);
        let created: Created = self
            .reach("a session is created", async |client| {
                client.create(&params).await.map_err(text)
            })
            .await;
        self.promise(created.session, 1, "session.created");
        let session = created.session.to_string();
        let http = self.viewers.len() % 2 == 1;
        let watching = Viewer::watch(self.daemon.socket(), session.clone(), http);
        self.viewers.push(watching);
        session
    }

    /// Records an answer.
    pub(super) fn promise(&mut self, session: SessionId, seq: Seq, kind: &'static str) {
        self.promised.push((session, seq, kind));
    }

    /// Waits for the `n`th end of a turn of a session, which must not be faulted then.
    pub(super) async fn turns(&mut self, session: &str, n: usize) -> Vec<Event> {
        self.reach("the turn ends", async |client| over(client, session, n).await)
            .await
    }

    /// The conditions that must hold at the end of every cell.
    pub(super) async fn end(mut self, cell: &Cell, sessions: &[String]) {
        self.struck(cell).await;
        for session in self
            .bystanders
            .iter()
            .chain(sessions)
            .cloned()
            .collect::<Vec<_>>()
        {
            self.turns(&session, 1).await;
        }
        let told = self
            .reach("the logs are told", async |client| {
                Logs::told(client).await.map_err(text)
            })
            .await;
        assert!(
            cell.action != Action::Kill || self.lives == 2,
            "kill -9 made {} lives:\n{}",
            self.lives,
            self.said
        );
        self.others_went_on(cell, &told, sessions);
        for (session, seq, kind) in &self.promised {
            // The answer names the last event of its append.
            let until = told
                .0
                .get(session)
                .and_then(|log| log.get(..usize::try_from(*seq).unwrap_or(0)));
            let there = until.is_some_and(|log| log.iter().any(|event| event.body.kind() == *kind));
            assert!(there, "I1: {kind} of {session} was promised up to seq {seq}");
        }
        let mut seen = Logs::default();
        for viewer in std::mem::take(&mut self.viewers) {
            let (session, events) = viewer.saw_all(&told).await;
            seen.0.insert(session, events);
        }
        for log in told.0.values() {
            let Some(EventBody::SessionCreated(created)) = log.first().map(|event| &event.body) else {
                panic!("a log begins with its creation");
            };
            check_effects(log, &PathBuf::from(&created.workdir).join("marks"));
        }
        self.stopped(&told, &seen).await;
    }

    /// Waits until the fault was hit: log readers, such as the audit writer, may lag behind the work.
    async fn struck(&mut self, cell: &Cell) {
        let point = cell.point.split(':').next().unwrap_or_default();
        let strikes = format!("fault point {point} strikes");
        eventually(&format!("{strikes}: it is never reached"), || {
            self.said.contains(&strikes) || self.daemon.said().contains(&strikes)
        })
        .await;
        if cell.action == Action::Kill && self.lives == 1 {
            self.client = None;
            self.revive().await;
        }
    }

    /// I6: a fault in one place costs at most one session its turn; a crash costs none.
    fn others_went_on(&self, cell: &Cell, told: &Logs, sessions: &[String]) {
        let failed = told.0.iter().filter(|(session, log)| {
            let cancelled = cell.scenario.cancels() && sessions.contains(&session.to_string());
            log.iter().any(|event| match &event.body {
                EventBody::TurnFinished(end) => {
                    end.reason != EndReason::Completed && !(cancelled && end.reason == EndReason::Cancelled)
                }
                _ => false,
            })
        });
        let most = usize::from(cell.action != Action::Kill);
        let failed = failed.count();
        assert!(failed <= most, "I6: {failed} sessions lost their turns");
        assert_eq!(
            told.0.len(),
            BYSTANDERS + sessions.len(),
            "I1: one key, one session"
        );
    }

    /// Stops the daemon and checks what remains: the audit file, the database, no process.
    async fn stopped(mut self, told: &Logs, seen: &Logs) {
        let data = self.daemon.data_dir();
        eventually("the audit file has caught up", || {
            check_audit(&data, told).is_ok()
        })
        .await;
        self.client = None;
        self.daemon.terminate();
        let status = self.daemon.ended().await;
        assert_eq!(status.code(), Some(0), "{}", self.daemon.said());
        assert_eq!(check_audit(&data, told), Ok(()));
        let stored = Logs::stored(&data).await;
        stored.continue_from(told);
        stored.continue_from(seen);
        let work = self.dir.path().join("work");
        eventually("I5: no process is left", || working_in(&work).is_empty()).await;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "map_err gives it away")]
pub(super) fn text(error: ClientError) -> String {
    error.to_string()
}

/// The log of a session, if its `n`th turn is over. A faulted session is resumed first, as a person
/// would do.
pub(super) async fn over(client: &Client, session: &str, n: usize) -> Result<Vec<Event>, String> {
    let row = client.get(session).await.map_err(text)?;
    match row.status.state {
        RunState::Idle | RunState::Failed | RunState::Closed => {}
        RunState::Faulted => {
            let params = ResumeParams {
                session: session.to_owned(),
                ..ResumeParams::default()
            };
            client.resume(&params).await.map_err(text)?;
            return Err("it was resumed".to_owned());
        }
        state => return Err(format!("it is {state:?}")),
    }
    let events = log(client, session).await?;
    let ends = events
        .iter()
        .filter(|event| matches!(event.body, EventBody::TurnFinished(_)));
    match ends.count() {
        count if count >= n => Ok(events),
        count => Err(format!("{count} turns are over")),
    }
}

/// The log as it is now.
pub(super) async fn log(client: &Client, session: &str) -> Result<Vec<Event>, String> {
    try_log(client, session).await.map_err(text)
}

/// A viewer that watches a session for the whole cell, over the socket or HTTP, and reconnects whenever the connection
/// breaks: I2.
struct Viewer {
    session: String,
    seen: Arc<Mutex<Vec<Event>>>,
    watching: JoinHandle<()>,
}

/// Connects to a daemon, whose HTTP address changes with each restart.
async fn way(socket: &Path, http: bool) -> Result<Way, ClientError> {
    if !http {
        return Ok(Way::Socket(socket.to_owned()));
    }
    let client = Client::connect(socket, &ConnectOptions::default()).await?;
    Access::of(&client).await.map(Way::Http)
}

impl Viewer {
    fn watch(socket: PathBuf, session: String, http: bool) -> Self {
        let seen = Arc::new(Mutex::new(Vec::<Event>::new()));
        let (to, of) = (Arc::clone(&seen), session.clone());
        let watching = tokio::spawn(async move {
            let mut ticks = interval(Duration::from_millis(50));
            loop {
                ticks.tick().await;
                let last = to
                    .lock()
                    .expect("nobody panics with it")
                    .last()
                    .map(|event| event.seq);
                let Ok(way) = way(&socket, http).await else {
                    continue;
                };
                let Ok(mut source) = way.source(&of, last).await else {
                    continue;
                };
                while let Some(push) = source.next().await {
                    match push {
                        Push::Event(stored) => {
                            let event = serde_json::from_slice(&stored.json).expect("a stored event parses");
                            to.lock().expect("nobody panics with it").push(event);
                        }
                        Push::Ended(_) => break,
                        Push::Delta(_)
                        | Push::Synced(_)
                        | Push::CaughtUp(_)
                        | Push::Lagged(_)
                        | Push::Unknown => {}
                    }
                }
            }
        });
        Self {
            session,
            seen,
            watching,
        }
    }

    /// It saw each event of the log once and in order. Returns the events.
    async fn saw_all(self, told: &Logs) -> (SessionId, Vec<Event>) {
        let session: SessionId = self.session.parse().expect("our id");
        let log = told.0.get(&session).expect("a session that was watched is told");
        let seen = || self.seen.lock().expect("nobody panics with it").clone();
        eventually("I2: a viewer sees all", || {
            seen().len() >= log.len() || self.watching.is_finished()
        })
        .await;
        self.watching.abort();
        let seen = seen();
        assert!(seen.starts_with(log), "I2: a viewer saw {seen:?} of {log:?}");
        (session, seen)
    }
}
