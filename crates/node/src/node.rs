//! A running node: started from settings; ended by a signal, a client, or a failure that restarts cannot fix.

use crate::children::{ChildArgs, Handles};
use crate::error::NodeError;
use crate::fleet::Member;
use crate::paths::Paths;
use crate::reload::{Present, Reloader};
use crate::root::{Health, RootMsg, Tree};
use crate::services;
use crate::start::Opened;
use crate::view::{View, model_note};
use agentd_actor_kit::{Clock, SupervisorMsg, Traced, Tracer};
use agentd_api::{Api, NodeFacts, Parts, StopRequest, SubagentApi};
use agentd_http::Bound;
use agentd_mcp::Pool;
use agentd_policy::level_in_words;
use agentd_provider::demo::Demo;
use agentd_sandbox::{Sandboxing, recorded};
use agentd_settings::{Loaded, Settings, Sources};
use agentd_store::{Backend, Mirror};
use agentd_workspace::Workspaces;
use ractor::ActorRef;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// How long after its deadline a drain is abandoned.
const DRAIN_GRACE: Duration = Duration::from_secs(5);
/// How long the tree may take to stop.
const STOP: Duration = Duration::from_secs(15);
/// How long tool servers may take to end.
const STOP_SERVERS: Duration = Duration::from_secs(10);
/// Lines queued for the audit file.
const AUDITS: usize = 64;
/// How long the store may take to close.
const CLOSE: Duration = Duration::from_secs(10);

/// The arguments of a node.
#[derive(Debug)]
pub struct NodeArgs {
    /// The configuration.
    pub loaded: Loaded,
    /// The process's environment, used only to look up credentials.
    pub environment: BTreeMap<String, String>,
    /// The node's paths; the directories exist already.
    pub paths: Paths,
    /// Add the scripted model of this demo, and make it the default.
    pub demo: Option<Demo>,
    /// Start even if the database has lost some of what it acknowledged.
    pub accept_loss: bool,
    /// The sources of the configuration, for a reload.
    pub sources: Sources,
}

/// How a node ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// As requested.
    Stopped,
    /// After a fatal error.
    Failed(String),
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    settings: Arc<Settings>,
    paths: Paths,
    default_socket: bool,
    model_note: String,
    http_note: String,
    pub(crate) root: ActorRef<RootMsg>,
    pub(crate) handles: Handles,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) health: watch::Receiver<Health>,
    stop_requests: mpsc::Receiver<StopRequest>,
    mirror: Option<Mirror>,
    servers: Option<Pool>,
    member: Option<Member>,
}

impl Node {
    /// Starts everything: store, tree, control socket. Returns once clients can send commands. The caller has checked
    /// the configuration ([`crate::check_rules`]).
    ///
    /// # Errors
    /// The missing or occupied resource, with the remedy.
    pub async fn start(args: NodeArgs) -> Result<Self, NodeError> {
        let settings = Arc::new(args.loaded.settings.clone());
        tracing::info!(data = %args.paths.data_dir.display(), "starting agentd");
        let hangup = crate::reload::hangup()?;
        let listener = listen(&args.paths.socket).await?;
        let http = crate::http::open(&args.loaded).await?;
        let http_note = crate::http::note(http.as_ref());
        let opened = Opened::open(&args, &settings, http.as_ref()).await?;
        let backend = Arc::clone(&opened.backend);
        let workspaces = crate::workspaces::open(&args, &backend).await?;
        let models = crate::start::models(&settings, &args.environment, args.demo, &opened.http).await;
        let (model_note, present) = (model_note(&models), Present::new(args.loaded.clone(), models));
        let (clock, (stages, told)) = (Clock::System, stages(&settings));
        let with = (&present, &workspaces);
        let child_args = crate::start::child_args(&args, &settings, &opened, with, (clock, stages)).await?;
        let (servers, subagents) = (child_args.servers.clone(), Arc::clone(&child_args.subagents));
        let tree = Tree::new(child_args);
        let (handles, health) = (tree.handles.clone(), tree.health.clone());
        let (stop, stop_requests) = mpsc::channel(4);
        let (audit, audits) = mpsc::channel(AUDITS);
        let reaching = (&handles, opened.http.clone());
        let reload = Reloader::new(&args, present, reaching, (clock, audit.clone()));
        let facts = facts(&args, tree.child_args(), http.as_ref());
        let committed = *backend.committed().borrow();
        let daily = Arc::new(crate::usage_counter::read(&args.paths.data_dir, committed));
        let parts = Parts {
            daily: Arc::clone(&daily),
            peers: opened.peers(&handles, &settings),
            ..parts(&args, &tree, facts, (&reload, &stop, audit), workspaces.clone())
        };
        let api = Arc::new(Api::new(parts));
        subagents.open(Box::new(SubagentApi(Arc::clone(&api))));
        let mut services = services::servers(listener, args.paths.socket.clone(), http, &api);
        services.extend(services::of_fleet(&opened, (&handles, &api), &stop, &settings));
        services.extend(services::usage(&args.paths.data_dir, &handles, &api, &daily));
        services.extend(services::reloads(&reload, hangup, args.demo.map(|_| stop)));
        services.push(services::workspaces(workspaces, tree.child_args()));
        services.extend(services::beside(
            &args,
            servers.clone(),
            (&handles, &backend, clock),
            (told, audits),
        )?);
        let root = tree.start(services).await?;
        Ok(Self {
            mirror: crate::start::mirror(&settings, &args.paths, &backend)?,
            default_socket: args.paths.is_default(),
            settings,
            paths: args.paths,
            model_note,
            http_note,
            root,
            handles,
            backend,
            health,
            stop_requests,
            servers,
            member: opened.member,
        })
    }

    /// The control socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.paths.socket
    }

    /// Whether clients find the socket without `--socket`.
    #[must_use]
    pub const fn default_socket(&self) -> bool {
        self.default_socket
    }

    /// The data directory.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.paths.data_dir
    }

    /// The default model, and the reason for it.
    #[must_use]
    pub fn model_note(&self) -> &str {
        &self.model_note
    }

    /// The HTTP address, and why it is not the usual one; `off` without HTTP.
    #[must_use]
    pub fn http_note(&self) -> &str {
        &self.http_note
    }

    /// Runs until it is ended: the first SIGTERM, SIGINT or client request drains; the second stops at once.
    ///
    /// Calls `signalled` at the first signal. A signal after that call is the second one: a listener of its own would
    /// say so before this one has taken the first, and two pending signals are one.
    pub async fn until_ended(mut self, signalled: impl FnOnce()) -> Ended {
        let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        else {
            return Ended::Failed("cannot receive signals".to_owned());
        };
        let mut health = self.health.clone();
        let asked = tokio::select! {
            _ = term.recv() => None,
            _ = int.recv() => None,
            Some(request) = self.stop_requests.recv() => Some(request),
            why = fatal(&mut health) => return Ended::Failed(why),
        };
        let request = asked.unwrap_or_else(|| {
            signalled();
            StopRequest::Drain
        });
        if request == StopRequest::Drain {
            tokio::select! {
                () = self.drain() => {}
                why = fatal(&mut health) => return Ended::Failed(why),
                _ = term.recv() => tracing::warn!("received a second signal; stopping immediately"),
                _ = int.recv() => tracing::warn!("received a second signal; stopping immediately"),
            }
        }
        self.stop().await;
        Ended::Stopped
    }

    pub(crate) async fn drain(&self) {
        let within = self.settings.node.drain_timeout;
        tracing::info!(
            ?within,
            "draining: starting no new turns and waiting for running work to end"
        );
        let deadline_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        let gives_up = async {
            match &self.member {
                Some(member) => {
                    let name = &member.joining.name;
                    crate::fleet::hand_over(member.fleet.as_ref(), name, &self.handles.supervisor).await;
                }
                None => std::future::pending().await,
            }
        };
        let drains = self
            .handles
            .supervisor
            .call(within + DRAIN_GRACE, |done| SupervisorMsg::Drain {
                deadline_ms,
                done,
            });
        let drained = tokio::select! {
            drained = drains => drained,
            () = gives_up => return,
        };
        match drained {
            Ok(0) => tracing::info!("drained"),
            Ok(running) => tracing::warn!(
                running,
                "sessions were still running; they continue after the next start"
            ),
            Err(error) => tracing::warn!(%error, "the drain did not complete"),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the mirror's files are the operator's")]
    pub(crate) async fn stop(self) {
        if self.root.stop_and_wait(None, Some(STOP)).await.is_err() {
            tracing::warn!("the actor tree did not stop in time");
        }
        if let Some(servers) = self.servers
            && !servers.close(STOP_SERVERS).await
        {
            tracing::warn!("tool servers did not exit in time; their wardens will end them");
        }
        if let Some(mirror) = self.mirror
            && tokio::task::spawn_blocking(move || drop(mirror)).await.is_err()
        {
            tracing::warn!("the JSONL mirror did not close cleanly; the next start will update its files");
        }
        if let Some(member) = &self.member {
            member.give_up().await;
        }
        // No sign of life after this: the store ends the membership when it closes.
        drop(self.member);
        match tokio::time::timeout(CLOSE, self.backend.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the store did not close cleanly"),
            Err(_) => tracing::error!("the store did not close in time"),
        }
    }
}

/// Ends what an earlier daemon left. Nobody else can use the data directory now, and no session runs yet.
pub(crate) async fn end_orphans(data_dir: &Path) -> Result<(), NodeError> {
    let ended = agentd_sandbox::end_orphans(data_dir)
        .await
        .map_err(|error| NodeError::path(data_dir, error))?;
    if ended > 0 {
        tracing::warn!(ended, "ended processes that an earlier daemon left behind");
    }
    Ok(())
}

async fn listen(socket: &Path) -> Result<agentd_control::Listener, NodeError> {
    agentd_control::bind(socket)
        .await
        .map_err(|e| NodeError::socket(socket, &e))
}

/// Waits for a fatal error of the tree. Without the root, nothing restarts actors.
async fn fatal(health: &mut watch::Receiver<Health>) -> String {
    match health.wait_for(|health| health.fatal.is_some()).await {
        Ok(health) => health.fatal.clone().unwrap_or_default(),
        Err(_) => "the root of the actor tree has stopped".to_owned(),
    }
}

/// The parts of the API.
fn parts(
    args: &NodeArgs,
    tree: &Tree,
    facts: NodeFacts,
    (reload, stop, audit): (&Arc<Reloader>, &mpsc::Sender<StopRequest>, mpsc::Sender<Value>),
    workspaces: Workspaces,
) -> Parts {
    let (child_args, handles) = (tree.child_args(), &tree.handles);
    let models = child_args.present.models.clone();
    let servers = child_args.servers.clone();
    Parts {
        supervisor: handles.supervisor.clone(),
        store: handles.store.clone(),
        feed: handles.feed.clone(),
        tools: handles.tools.clone(),
        gate: handles.gate.clone(),
        backend: Arc::clone(&child_args.backend),
        view: Arc::new(View::new(models, handles, &tree.health, servers)),
        registry: child_args.tools.clone(),
        places: crate::start::places(&args.loaded.settings, &args.environment),
        loaded: child_args.present.settings.clone(),
        reload: Arc::<Reloader>::clone(reload),
        clock: child_args.clock,
        facts,
        stop: stop.clone(),
        audit,
        daily: Arc::default(),
        checkpoints: child_args.checkpoints.clone(),
        protected: child_args.executor.protected.places().clone(),
        peers: None,
        parsers: child_args.executor.parsers.clone(),
        workspaces,
    }
}

fn facts(args: &NodeArgs, child_args: &ChildArgs, http: Option<&Bound>) -> NodeFacts {
    let (settings, paths) = (&args.loaded.settings, &args.paths);
    let sandboxing = &child_args.executor.sandboxing;
    NodeFacts {
        node: crate::start::node_name(settings),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_at: child_args.clock.now(),
        socket: paths.socket.display().to_string(),
        http: crate::http::url(http),
        store: agentd_settings::mask_url(&settings.store.url),
        data_dir: paths.data_dir.display().to_string(),
        sandbox: match sandboxing {
            Sandboxing::Missing(_) => "missing".to_owned(),
            Sandboxing::None | Sandboxing::Walls { .. } => {
                level_in_words(sandboxing.level(), recorded(&paths.data_dir).as_ref())
            }
        },
        no_sandbox: sandboxing
            .refusal()
            .map(|why| (why.message.clone(), why.fix.clone())),
        walls: matches!(sandboxing, Sandboxing::Walls { .. }),
    }
}

/// Stages of calls are reported only if the trace file is on.
fn stages(settings: &Settings) -> (Tracer, Option<mpsc::Receiver<Traced>>) {
    if !settings.log.trace {
        return (Tracer::default(), None);
    }
    let (stages, told) = Tracer::channel();
    (stages, Some(told))
}
