//! The parts of the tree: each singleton, its arguments, and the handles that point at its current incarnation.

pub(crate) use crate::child::Child;
use crate::reload::Present;
use crate::service::{Phase, Service};
use agentd_actor_kit::{
    Clock, FeedMsg, GateMsg, Handle, ModelMsg, Pointer, StoreMsg, SubagentPort, SupervisorMsg, ToolMsg,
    Tracer,
};
use agentd_checkpoint::Keeper;
use agentd_hooks::Setup;
use agentd_index::{IndexMsg, Indexer, IndexerArgs};
use agentd_loop_supervisor::{Bounds, LoopSupervisor, SupervisorArgs};
use agentd_mcp::Pool;
use agentd_model_client::{ClientArgs, ModelClient};
use agentd_permission_gate::{GateArgs, PermissionGate};
use agentd_provider::Registry as Models;
use agentd_session_loop::{Services, Sharing, Timing, WorkerSpawner};
use agentd_session_store::{Feed, FeedArgs, FeedLimits, OnFatal, SessionStore, StoreArgs, StoreLimits};
use agentd_settings::{Loaded, RatesConfig, Settings};
use agentd_store::{Backend, Lease};
use agentd_tool_executor::{ExecutorArgs, ToolExecutor};
use agentd_tools::{Registry as Tools, Remote};
use agentd_workspace::Workspaces;
use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, Message, RactorErr};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How long a singleton may take to stop before the root kills it.
const STOP: Duration = Duration::from_secs(5);

/// The arguments from which all children start.
#[derive(Debug)]
pub(crate) struct ChildArgs {
    pub(crate) present: Present,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) http: reqwest::Client,
    pub(crate) tools: Tools,
    pub(crate) servers: Option<Pool>,
    pub(crate) executor: ExecutorArgs,
    pub(crate) indexer: IndexerArgs,
    pub(crate) clock: Clock,
    pub(crate) stages: Tracer,
    pub(crate) subagents: Arc<SubagentPort>,
    pub(crate) checkpoints: Keeper,
    pub(crate) workspaces: Option<Workspaces>,
    pub(crate) setup: Arc<dyn Setup>,
    pub(crate) lease: Lease,
    pub(crate) home: Option<String>,
}

impl ChildArgs {
    pub(crate) fn settings(&self) -> Arc<Loaded> {
        self.present.settings.now()
    }

    /// The configured providers, and those that only a demo or a test has. A reload may supply the missing keys of a
    /// provider.
    pub(crate) fn providers(&self) -> BTreeSet<String> {
        let configured = self
            .settings()
            .settings
            .providers
            .keys()
            .cloned()
            .collect::<BTreeSet<_>>();
        let used = self.present.models.now().providers().into_keys();
        configured.into_iter().chain(used).collect()
    }
}

/// The pointers that the root updates.
#[derive(Debug)]
pub(crate) struct Children {
    feed: Pointer<FeedMsg>,
    store: Pointer<StoreMsg>,
    models: BTreeMap<String, Pointer<ModelMsg>>,
    indexer: Pointer<IndexMsg>,
    tools: Pointer<ToolMsg>,
    gate: Pointer<GateMsg>,
    supervisor: Pointer<SupervisorMsg>,
    on_fatal: OnFatal,
    services: Vec<Service>,
}

/// The handles behind these pointers, for everyone else.
#[derive(Debug, Clone)]
pub(crate) struct Handles {
    pub(crate) feed: Handle<FeedMsg>,
    pub(crate) store: Handle<StoreMsg>,
    pub(crate) models: BTreeMap<String, Handle<ModelMsg>>,
    pub(crate) indexer: Handle<IndexMsg>,
    pub(crate) tools: Handle<ToolMsg>,
    pub(crate) gate: Handle<GateMsg>,
    pub(crate) supervisor: Handle<SupervisorMsg>,
}

impl Children {
    /// Creates pointers for these providers. `on_fatal` is called when the store has stopped for good.
    pub(crate) fn new(providers: BTreeSet<String>, on_fatal: OnFatal) -> Self {
        Self {
            feed: Pointer::new("the feed"),
            store: Pointer::new("the session store"),
            models: providers
                .into_iter()
                .map(|name| (name, Pointer::new("the model client")))
                .collect(),
            indexer: Pointer::new("the indexer"),
            tools: Pointer::new("the tool executor"),
            gate: Pointer::new("the permission gate"),
            supervisor: Pointer::new("the loop supervisor"),
            on_fatal,
            services: Vec::new(),
        }
    }

    /// Adds the services.
    pub(crate) fn serving(mut self, services: Vec<Service>) -> Self {
        self.services = services;
        self
    }

    fn services_of(&self, phase: Phase) -> impl Iterator<Item = &Service> {
        self.services.iter().filter(move |service| service.phase == phase)
    }

    /// Whether the child is a service that finishes what it has begun when the node stops.
    pub(crate) fn is_front(&self, child: &Child) -> bool {
        let Child::Service(name) = child else { return false };
        self.service(name)
            .is_some_and(|service| service.phase == Phase::Front)
    }

    fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }

    /// Handles for users outside the tree.
    pub(crate) fn handles(&self) -> Handles {
        Handles {
            feed: self.feed.handle(),
            store: self.store.handle(),
            models: self
                .models
                .iter()
                .map(|(name, pointer)| (name.clone(), pointer.handle()))
                .collect(),
            indexer: self.indexer.handle(),
            tools: self.tools.handle(),
            gate: self.gate.handle(),
            supervisor: self.supervisor.handle(),
        }
    }

    /// The start order: each child after the ones that it uses.
    pub(crate) fn in_order(&self) -> Vec<Child> {
        let mut order = vec![Child::Feed, Child::SessionStore];
        order.extend(
            self.services_of(Phase::Log)
                .map(|service| Child::Service(service.name)),
        );
        order.extend(self.models.keys().cloned().map(Child::ModelClient));
        order.extend([Child::Indexer, Child::ToolExecutor]);
        order.extend([Child::PermissionGate, Child::LoopSupervisor]);
        let front = self.services_of(Phase::Front);
        let last = front.chain(self.services_of(Phase::Last));
        order.extend(last.map(|service| Child::Service(service.name)));
        order
    }

    /// Starts a child linked to the root and points its handles at it.
    pub(crate) async fn start(
        &self,
        child: &Child,
        args: &ChildArgs,
        root: ActorCell,
    ) -> Result<ActorId, ActorProcessingErr> {
        match child {
            Child::Feed => {
                let (feed, _) = Actor::spawn_linked(None, Feed, feed_args(args), root).await?;
                Ok(point(&self.feed, feed))
            }
            Child::SessionStore => {
                let (store, _) = Actor::spawn_linked(None, SessionStore, self.store_args(args), root).await?;
                Ok(point(&self.store, store))
            }
            Child::ModelClient(provider) => {
                let pointer = self.models.get(provider).ok_or("no such provider")?;
                let client = ModelClient::start(client_args(args, provider), root).await?;
                Ok(point(pointer, client))
            }
            Child::Indexer => {
                let indexer = Indexer::start(args.indexer.clone(), root).await?;
                Ok(point(&self.indexer, indexer))
            }
            Child::ToolExecutor => {
                let executor = crate::indexing::searching(args, self.indexer.handle());
                let executor = ToolExecutor::start(executor, root).await?;
                Ok(point(&self.tools, executor))
            }
            Child::PermissionGate => {
                let gate = PermissionGate::start(self.gate_args(args), root).await?;
                Ok(point(&self.gate, gate))
            }
            Child::LoopSupervisor => {
                let supervisor = SupervisorArgs {
                    services: Arc::new(self.services(args)),
                    bounds: bounds(&args.settings().settings),
                };
                let supervisor = LoopSupervisor::start(supervisor, root).await?;
                Ok(point(&self.supervisor, supervisor))
            }
            Child::Service(name) => Ok(self.service(name).ok_or("no such service")?.start(root).await?),
        }
    }

    fn store_args(&self, args: &ChildArgs) -> StoreArgs {
        StoreArgs {
            backend: Arc::clone(&args.backend),
            feed: self.feed.handle(),
            limits: StoreLimits::default(),
            on_fatal: self.on_fatal.clone(),
        }
    }

    fn gate_args(&self, args: &ChildArgs) -> GateArgs {
        GateArgs {
            rules: args.settings().settings.permission.clone(),
            home: args.home.clone(),
            places: args.executor.protected.places().clone(),
            store: self.store.handle(),
            clock: args.clock,
        }
    }

    fn services(&self, args: &ChildArgs) -> Services {
        let handles = self.handles();
        Services {
            clock: args.clock,
            store: handles.store,
            feed: handles.feed,
            gate: handles.gate,
            tools: handles.tools,
            models: agentd_session_loop::Models::new(args.present.models.clone(), handles.models),
            workers: Box::new(WorkerSpawner {
                http: args.http.clone(),
                store: self.store.handle(),
                remote: remote(args),
            }),
            registry: args.tools.clone(),
            remote: remote(args),
            hooks: crate::start::hooks(args),
            subagents: Arc::clone(&args.subagents),
            stages: args.stages.clone(),
            config: args.present.core.clone(),
            sandbox: args.executor.sandboxing.level(),
            sharing: Sharing::from(&args.settings().settings.scheduler),
            timing: Timing {
                idle: args.settings().settings.node.idle_passivate,
                ..Timing::default()
            },
            checkpoints: args.checkpoints.clone(),
            files: crate::workspaces::kept(args, self.store.handle()),
            setup: Arc::clone(&args.setup),
            lease: args.lease.clone(),
        }
    }

    /// Tells the services that finish what they have begun that the node stops.
    pub(crate) fn announce_stop(&self) {
        self.services_of(Phase::Front).for_each(Service::announce_stop);
    }

    /// Stops a child, and kills it if it does not stop in time.
    pub(crate) async fn stop(&self, child: &Child) {
        match child {
            Child::Feed => halt(&self.feed).await,
            Child::SessionStore => halt(&self.store).await,
            Child::ModelClient(provider) => {
                if let Some(pointer) = self.models.get(provider) {
                    halt(pointer).await;
                }
            }
            Child::Indexer => halt(&self.indexer).await,
            Child::ToolExecutor => halt(&self.tools).await,
            Child::PermissionGate => halt(&self.gate).await,
            Child::LoopSupervisor => halt(&self.supervisor).await,
            Child::Service(name) => {
                if let Some(service) = self.service(name) {
                    service.announce_stop();
                    halt(&service.pointer).await;
                }
            }
        }
    }
}

fn feed_args(args: &ChildArgs) -> FeedArgs {
    let ring = args.settings().settings.limits.attach_ring_bytes;
    FeedArgs {
        committed: args.backend.committed(),
        limits: FeedLimits {
            viewer_bytes: usize::try_from(ring).unwrap_or(usize::MAX),
            ..FeedLimits::default()
        },
    }
}

fn client_args(args: &ChildArgs, provider: &str) -> ClientArgs {
    let (loaded, models) = (args.settings(), args.present.models.now());
    let config = client_config(&loaded.settings, &models, provider);
    ClientArgs {
        provider: provider.to_owned(),
        permits: config.permits,
        // The other nodes may have all permits until they learn of this one.
        share: args.backend.fleet().map(|_| 0),
        credentials: config.credentials,
        rates: config.rates,
        scheduler: loaded.settings.scheduler.clone(),
        patience_ms: config.patience_ms,
        clock: args.clock,
    }
}

/// The configuration of one provider's calls.
#[derive(Debug)]
pub(crate) struct ClientConfig {
    permits: u32,
    credentials: Vec<String>,
    rates: RatesConfig,
    patience_ms: u64,
}

impl ClientConfig {
    pub(crate) fn message(self) -> ModelMsg {
        ModelMsg::Configure {
            permits: self.permits,
            credentials: self.credentials,
            rates: self.rates,
            patience_ms: self.patience_ms,
        }
    }
}

pub(crate) fn client_config(settings: &Settings, models: &Models, provider: &str) -> ClientConfig {
    let configured = settings.providers.get(provider);
    let permits = models.providers().get(provider).copied();
    ClientConfig {
        permits: permits
            .or_else(|| configured.map(|provider| provider.max_concurrent))
            .unwrap_or(1),
        credentials: models.credentials(provider),
        rates: configured.map(|provider| provider.rates).unwrap_or_default(),
        patience_ms: settings.retry.cap_ms,
    }
}

fn point<M: Message>(pointer: &Pointer<M>, actor: ActorRef<M>) -> ActorId {
    let id = actor.get_id();
    pointer.set(actor);
    id
}

async fn halt<M: Message>(pointer: &Pointer<M>) {
    let actor = pointer.handle().actor();
    pointer.clear();
    let Some(actor) = actor else { return };
    if let Err(error) = actor.stop_and_wait(None, Some(STOP)).await {
        // Any other error means that it has ended already.
        if matches!(error, RactorErr::Timeout) {
            tracing::warn!("{pointer:?} did not stop in time and is killed");
        }
        // Wait for its end, so that it never runs at the same time as the next incarnation.
        let _ = actor.kill_and_wait(Some(STOP)).await;
    }
}

fn bounds(settings: &Settings) -> Bounds {
    Bounds {
        hot: settings.limits.sessions_hot as usize,
        wake_per_second: settings.node.wake_per_second,
        ..Bounds::default()
    }
}

/// The tool servers, as sessions use them.
fn remote(args: &ChildArgs) -> Option<Arc<dyn Remote>> {
    let pool = args.servers.clone()?;
    Some(Arc::new(pool))
}
