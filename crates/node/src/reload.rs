//! Reloads the configuration: settings, rules, models, prices and keys. This restarts no actor: users of a value read
//! the current one.

use crate::children::{Handles, client_config};
use crate::core::core_config;
use crate::error::NodeError;
use crate::key_files::{Look, Looks, look};
use crate::node::NodeArgs;
use crate::sandboxing::denied_reads;
use crate::start::{check_rules, models};
use agentd_actor_kit::{Clock, GateMsg, Handle, ModelMsg, Read, Routed, StoreMsg, SupervisorMsg};
use agentd_api::{Reload, StopRequest};
use agentd_protocol::{Fault, Principal, Reloaded, RunState, SessionId, Summary, WaitReason};
use agentd_provider::Registry as Models;
use agentd_provider::demo::Demo;
use agentd_settings::{InUse, Live, Loaded, Settings, Sources};
use agentd_store::Filter;
use agentd_turn::{Command, Config};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Mutex, mpsc};

/// Time limit for one actor's part of a reload.
const PART: Duration = Duration::from_secs(10);
/// Waiting sessions per page of the list.
const PAGE: u32 = 200;
/// The minimum interval of key file checks, whatever the settings say.
const SOONEST: Duration = Duration::from_millis(50);
/// If key file checks are off, how often to read the settings again: a reload may turn them on.
const IDLE: Duration = Duration::from_secs(60);
/// What keeps its old value although its key changed: the sandbox and the index were built from it.
const HIDDEN: &str = "permission.rules (files hidden from commands and the search index)";

/// The values that a reload replaces. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Present {
    /// The settings.
    pub(crate) settings: Live<Loaded>,
    /// The models with their prices and keys.
    pub(crate) models: Live<Models>,
    /// The settings of the pure core.
    pub(crate) core: Live<Config>,
}

impl Present {
    pub(crate) fn new(loaded: Loaded, models: Models) -> Self {
        Self {
            core: Live::new(core_config(&loaded.settings)),
            settings: Live::new(loaded),
            models: Live::new(models),
        }
    }
}

/// The sources of settings and keys.
#[derive(Debug)]
struct Origins {
    sources: Sources,
    environment: BTreeMap<String, String>,
    demo: Option<Demo>,
    http: reqwest::Client,
}

/// The actors that a reload notifies.
#[derive(Debug)]
struct Parties {
    gate: Handle<GateMsg>,
    clients: BTreeMap<String, Handle<ModelMsg>>,
    store: Handle<StoreMsg>,
    supervisor: Handle<SupervisorMsg>,
}

/// Executes reloads, one at a time.
#[derive(Debug)]
pub(crate) struct Reloader {
    present: Present,
    origins: Origins,
    parties: Parties,
    clock: Clock,
    /// The queue to the audit file.
    audit: mpsc::Sender<Value>,
    /// One reload at a time holds it.
    turn: Mutex<Left>,
}

/// The part of the last reload that waits for open turns.
#[derive(Debug, Default)]
struct Left {
    /// The settings that it read.
    read: Option<Loaded>,
    /// Removed models that stay until the open turns that use them have ended.
    kept: Vec<String>,
}

impl Reloader {
    /// `audit` takes the lines for the audit file.
    pub(crate) fn new(
        args: &NodeArgs,
        present: Present,
        (handles, http): (&Handles, reqwest::Client),
        (clock, audit): (Clock, mpsc::Sender<Value>),
    ) -> Arc<Self> {
        Arc::new(Self {
            present,
            origins: Origins {
                sources: args.sources.clone(),
                environment: args.environment.clone(),
                demo: args.demo,
                http,
            },
            parties: Parties {
                gate: handles.gate.clone(),
                clients: handles.models.clone(),
                store: handles.store.clone(),
                supervisor: handles.supervisor.clone(),
            },
            clock,
            audit,
            turn: Mutex::default(),
        })
    }

    async fn carry_out(&self, left: &mut Left) -> Result<Reloaded, Fault> {
        let read = self.read().await?;
        let done = self.take_over(read.clone(), left).await?;
        left.read = (!left.kept.is_empty()).then_some(read);
        Ok(done)
    }

    /// Carries out what was left, if open turns no longer need all that was kept for them.
    async fn finish(&self, left: &mut Left) {
        let Some(read) = left.read.clone() else { return };
        let unused = |used: &BTreeSet<String>| left.kept.iter().any(|name| !used.contains(name));
        if !self.models_in_use().await.is_ok_and(|used| unused(&used)) {
            return;
        }
        match self.take_over(read, left).await {
            Ok(done) if !done.changed.is_empty() => {
                tracing::info!(changed = ?done.changed, "the turns that used removed models have ended");
                self.record(&Principal::agentd(), &json!(done));
            }
            Ok(_) => {}
            Err(fault) => tracing::warn!(%fault, "could not remove models that no turn uses any more"),
        }
        if left.kept.is_empty() {
            left.read = None;
        }
    }

    async fn take_over(&self, read: Loaded, left: &mut Left) -> Result<Reloaded, Fault> {
        let old = self.present.settings.now();
        let in_use = InUse {
            providers: self.parties.clients.keys().cloned().collect(),
            models: self.models_in_use().await?,
        };
        let mut reload = old.reload(read, &in_use);
        let home = self.origins.environment.get("HOME").map(String::as_str);
        let denied = |settings: &Settings| denied_reads(&settings.permission, home);
        if denied(&old.settings) != denied(&reload.loaded.settings) {
            reload.restart.push(HIDDEN.to_owned());
        }
        let permission = Box::new(reload.loaded.settings.permission.clone());
        let configure = |done| GateMsg::Configure { permission, done };
        let ruled = self.parties.gate.call(PART, configure).await;
        let ruled = ruled.map_err(|error| Fault::unavailable("gate_down", error.to_string()))?;
        ruled.map_err(|why| bad(&why))?;
        let files = reload.loaded.files();
        self.present.core.set(core_config(&reload.loaded.settings));
        self.present.settings.set(reload.loaded);
        left.kept.clone_from(&reload.kept);
        let tried = self.keys(&left.kept).await;
        Ok(Reloaded {
            files,
            changed: reload.changed,
            restart: reload.restart,
            kept: reload.kept,
            tried,
        })
    }

    /// Reads the configuration from disk, with the same checks as at the start.
    #[expect(clippy::disallowed_methods, reason = "the files are the operator's")]
    async fn read(&self) -> Result<Loaded, Fault> {
        let (sources, environment) = (self.origins.sources.clone(), self.origins.environment.clone());
        let read = move || {
            let loaded = agentd_settings::load(&sources).map_err(|error| error.to_string())?;
            check_rules(&loaded, &environment).map_err(|error| error.to_string())?;
            Ok(loaded)
        };
        let read: Result<Loaded, String> = tokio::task::spawn_blocking(read)
            .await
            .unwrap_or_else(|error| Err(error.to_string()));
        read.map_err(|why| bad(&why))
    }

    /// Reads the keys again, and lets sessions that wait for one try at once. Returns how many. Removed models that stay for
    /// open turns keep their keys.
    async fn keys(&self, kept: &[String]) -> u64 {
        let Origins {
            environment,
            demo,
            http,
            ..
        } = &self.origins;
        let loaded = self.present.settings.now();
        let mut offered = loaded.settings.clone();
        offered.models.retain(|name, _| !kept.contains(name));
        let mut found = models(&offered, environment, *demo, http).await;
        found.let_finish(&self.present.models.now(), kept);
        self.present.models.set(found);
        let registry = self.present.models.now();
        for (provider, client) in &self.parties.clients {
            client.cast(client_config(&loaded.settings, &registry, provider).message());
        }
        self.try_again().await
    }

    /// Reads the keys again when their files change. Each change allows one attempt: a key that is refused again is not
    /// tried until the next change.
    pub(crate) async fn watch_keys(&self) {
        let mut looks = Looks::new(self.look().await);
        loop {
            let every = self.present.settings.now().settings.retry.key_files_ms;
            let idle = if every == 0 {
                IDLE
            } else {
                Duration::from_millis(every).max(SOONEST)
            };
            tokio::time::sleep(idle).await;
            self.finish(&mut *self.turn.lock().await).await;
            if every == 0 || !looks.settled(self.look().await) {
                continue;
            }
            let left = self.turn.lock().await;
            let tried = self.keys(&left.kept).await;
            drop(left);
            tracing::info!(tried, "key files changed; reloaded the keys");
            self.record(
                &Principal::agentd(),
                &json!({"keys": "read again", "tried": tried}),
            );
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the files are the operator's")]
    async fn look(&self) -> Look {
        let loaded = self.present.settings.now();
        let looked = tokio::task::spawn_blocking(move || look(&loaded.settings)).await;
        looked.unwrap_or_default()
    }

    async fn try_again(&self) -> u64 {
        let waits = RunState::Waiting(WaitReason::Credentials);
        let mut tried = 0;
        let found = self.sessions(&[waits]).await;
        for row in found.unwrap_or_default() {
            if row.status.state == waits {
                tried += u64::from(self.resume(row.session).await);
            }
        }
        tried
    }

    /// The models of open turns.
    async fn models_in_use(&self) -> Result<BTreeSet<String>, Fault> {
        let states: Vec<RunState> = RunState::all().filter(|state| !state.at_rest()).collect();
        let found = self.sessions(&states).await.ok_or_else(|| {
            Fault::unavailable(
                "store_down",
                "could not read from the store which models open turns use",
            )
        })?;
        let open = found.into_iter().filter(|row| row.turn.is_some());
        Ok(open.map(|row| row.model).collect())
    }

    /// The sessions in these states.
    async fn sessions(&self, states: &[RunState]) -> Option<Vec<Summary>> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let filter = Filter {
                states: states.iter().map(|state| state.as_str().to_owned()).collect(),
                limit: PAGE,
                after: after.map(Into::into),
                ..Filter::default()
            };
            let list = |done| StoreMsg::Read(Read::List { filter, done });
            let Ok(Ok(rows)) = self.parties.store.call(PART, list).await else {
                tracing::warn!(
                    ?states,
                    "could not read from the store which sessions are in these states"
                );
                return None;
            };
            let full = rows.len() >= PAGE as usize;
            after = rows.last().map(|row| row.summary.session);
            found.extend(rows.into_iter().map(|row| row.summary));
            if !full {
                return Some(found);
            }
        }
    }

    /// A session that cannot resume now resumes at its own time.
    async fn resume(&self, session: SessionId) -> bool {
        let reason = "reloaded the credentials".to_owned();
        let routed = |done| {
            SupervisorMsg::Route(Routed {
                session,
                command: Box::new(Command::Resume { reason, moved: None }),
                by: Principal::agentd(),
                key: None,
                done,
            })
        };
        matches!(self.parties.supervisor.call(PART, routed).await, Ok(Ok(_)))
    }

    /// Without an audit file, nothing receives the line. If the audit writer is too far behind, the log has the warning.
    fn record(&self, by: &Principal, what: &Value) {
        let line = json!({"at": self.clock.now(), "who": by, "session": Value::Null, "seq": Value::Null,
            "event": "settings.reloaded", "what": what, "why": Value::Null, "trace_id": Value::Null});
        if let Err(mpsc::error::TrySendError::Full(_)) = self.audit.try_send(line) {
            tracing::warn!("a reload is missing from the audit file: the audit writer is too far behind");
        }
    }
}

#[async_trait]
impl Reload for Reloader {
    async fn reload(&self, by: &Principal) -> Result<Reloaded, Fault> {
        let mut left = self.turn.lock().await;
        let reloaded = self.carry_out(&mut left).await;
        match &reloaded {
            Ok(done) => {
                tracing::info!(
                    %by,
                    changed = ?done.changed,
                    restart = ?done.restart,
                    kept = ?done.kept,
                    tried = done.tried,
                    "reloaded the configuration"
                );
                self.record(by, &json!(done));
            }
            Err(fault) => {
                tracing::warn!(%by, %fault, "could not reload the configuration; keeping the previous one");
                self.record(by, &json!({"refused": fault.message}));
            }
        }
        reloaded
    }
}

/// Subscribes to SIGHUP, which no longer ends the process from now on.
pub(crate) fn hangup() -> Result<Signal, NodeError> {
    signal(SignalKind::hangup()).map_err(|error| NodeError::Unsupported(error.to_string()))
}

/// Handles SIGHUP: reloads, or drains if `leaves` is given.
pub(crate) async fn on_hangup(
    hangup: &mut Signal,
    reloader: &Reloader,
    leaves: Option<&mpsc::Sender<StopRequest>>,
) {
    while hangup.recv().await.is_some() {
        match leaves {
            // A full queue already contains such a request.
            Some(stop) => drop(stop.try_send(StopRequest::Drain)),
            // The log records the result.
            None => drop(reloader.reload(&Principal("signal:SIGHUP".to_owned())).await),
        }
    }
}

fn bad(why: &str) -> Fault {
    Fault::invalid("bad_settings", why).hint("the daemon keeps its previous settings")
}
