//! The pool of a node's tool servers, outside its sessions.

use crate::answer::CallAnswer;
use crate::call::Call;
use crate::error::McpError;
use crate::launch::Launch;
use crate::name::server_of;
use crate::offer::Offers;
use crate::reach::Ways;
use crate::server::{InUse, Server, ServerStatus};
use crate::spec::{Scope, ServerSpec};
use agentd_fault_points as fault;
use agentd_tools::ToolEntry;
use futures_util::future::join_all;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// How long a server must have been unused to end after a session of its directory was closed. Consecutive sessions
/// share it.
const RELEASED: Duration = Duration::from_secs(30);

/// The limits of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The most running servers, over all working directories.
    pub servers: usize,
    /// How long a request for offers waits for servers that are starting.
    pub patience: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            servers: 64,
            patience: Duration::from_secs(20),
        }
    }
}

/// The tools of one server, or why they are unknown.
#[derive(Debug)]
pub struct Listing {
    /// The name of the server.
    pub server: String,
    /// Its tools.
    pub offers: Result<Arc<Offers>, McpError>,
}

/// The tool servers of a node. Clones share the same pool; dropping the last one ends the servers.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    specs: Vec<Arc<ServerSpec>>,
    ways: Ways,
    bounds: Bounds,
    servers: Mutex<Servers>,
    changes: Arc<watch::Sender<u64>>,
}

/// The key of a server: its name, and its working directory unless it is shared.
type ServerKey = (String, Option<PathBuf>);

/// `None` after the pool was closed.
type Servers = Option<HashMap<ServerKey, Arc<Server>>>;

impl Pool {
    /// Creates a pool; starts no server yet. [`Pool::tend`] ends idle servers.
    ///
    /// # Errors
    /// A server's configuration is invalid, or two servers have the same name.
    pub fn new(
        servers: Vec<ServerSpec>,
        launch: Arc<dyn Launch>,
        http: reqwest::Client,
    ) -> Result<Self, McpError> {
        Self::bounded(servers, launch, http, Bounds::default())
    }

    /// Creates a pool with limits.
    ///
    /// # Errors
    /// A server's configuration is invalid, or two servers have the same name.
    pub fn bounded(
        servers: Vec<ServerSpec>,
        launch: Arc<dyn Launch>,
        http: reqwest::Client,
        bounds: Bounds,
    ) -> Result<Self, McpError> {
        let mut names = BTreeSet::new();
        for spec in &servers {
            spec.check()?;
            if !names.insert(&spec.name) {
                return Err(McpError::Spec {
                    server: spec.name.clone(),
                    problem: "another tool has the same name".to_owned(),
                });
            }
        }
        Ok(Self(Arc::new(Inner {
            specs: servers.into_iter().map(Arc::new).collect(),
            ways: Ways { launch, http },
            bounds,
            servers: Mutex::new(Some(HashMap::new())),
            changes: Arc::default(),
        })))
    }

    /// Ends idle servers; never returns. The root of the node runs it, and runs it again if it fails.
    pub async fn tend(&self) {
        let idle = self.0.specs.iter().map(|spec| spec.limits.idle).min();
        let often = idle.unwrap_or_default() / 4;
        let mut ticks = interval(often.clamp(Duration::from_secs(1), Duration::from_secs(60)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let servers: Vec<Arc<Server>> = {
                let servers = self.0.servers();
                servers.iter().flat_map(HashMap::values).map(Arc::clone).collect()
            };
            let rest = |server: &Arc<Server>| {
                let server = Arc::clone(server);
                async move { server.rest_if_idle(server.spec.limits.idle).await }
            };
            join_all(servers.iter().map(rest)).await;
        }
    }

    /// Whether no server is configured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.specs.is_empty()
    }

    /// The tools of the servers for a session in `workdir`, in configuration order. Asks all servers concurrently; a
    /// failure affects only its own server.
    pub async fn offers(&self, workdir: &Path) -> Vec<Listing> {
        let ask = |spec: &Arc<ServerSpec>| {
            let spec = Arc::clone(spec);
            async move {
                Listing {
                    server: spec.name.clone(),
                    offers: self.offers_of(&spec, workdir).await,
                }
            }
        };
        join_all(self.0.specs.iter().map(ask)).await
    }

    /// The same within the pool's patience. A server that is still starting continues to start.
    pub(crate) async fn offers_soon(&self, workdir: &Path, servers: &[String]) -> Vec<Listing> {
        let patience = self.0.bounds.patience;
        let ask = |spec: &Arc<ServerSpec>| {
            let (pool, spec, workdir) = (self.clone(), Arc::clone(spec), workdir.to_owned());
            let server = spec.name.clone();
            let asked = tokio::spawn(async move { pool.offers_of(&spec, &workdir).await });
            async move {
                let slow = McpError::Slow {
                    server: server.clone(),
                    what: "the request for its tools",
                    within: patience,
                };
                let offers = match timeout(patience, asked).await {
                    Ok(Ok(offers)) => offers,
                    Ok(Err(_)) | Err(_) => Err(slow),
                };
                Listing { server, offers }
            }
        };
        let wanted = |spec: &&Arc<ServerSpec>| servers.contains(&spec.name);
        let asked: Vec<_> = self.0.specs.iter().filter(wanted).map(ask).collect();
        join_all(asked).await
    }

    async fn offers_of(&self, spec: &Arc<ServerSpec>, workdir: &Path) -> Result<Arc<Offers>, McpError> {
        self.server(spec, workdir)?.offers(&self.0.ways).await
    }

    /// The names of the servers.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.specs.iter().map(|spec| spec.name.clone()).collect()
    }

    /// The last known tools of all servers used so far, without asking any server.
    #[must_use]
    pub fn known(&self) -> Vec<ToolEntry> {
        let servers = self.0.servers();
        let all = servers.iter().flat_map(HashMap::values);
        let mut tools: Vec<ToolEntry> = all.flat_map(|server| server.known()).collect();
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        tools.dedup_by(|a, b| a.spec().name == b.spec().name);
        tools
    }

    /// Calls a tool for a session in `workdir`, to its one answer. Dropping the future cancels the call at the server;
    /// effects that it already had remain.
    pub async fn call(&self, workdir: &Path, call: Call) -> CallAnswer {
        let began = Instant::now();
        self.answer(workdir, call).await.within(began.elapsed())
    }

    async fn answer(&self, workdir: &Path, call: Call) -> CallAnswer {
        let spec = server_of(&call.name).and_then(|name| self.0.specs.iter().find(|spec| spec.name == name));
        let Some(spec) = spec else {
            let names: Vec<&str> = self.0.specs.iter().map(|spec| spec.name.as_str()).collect();
            return CallAnswer::no_such_server(&call.name, &names);
        };
        let max_bytes = call.max_bytes;
        let done = async {
            let server = self.server(spec, workdir)?;
            let (connection, offers) = server.connected(&self.0.ways).await?;
            let Some(offer) = offers.tools.iter().find(|offer| offer.name == call.name) else {
                let names: Vec<&str> = offers.tools.iter().map(|offer| offer.name.as_str()).collect();
                return Ok(CallAnswer::no_such_tool(&call.name, &spec.name, &names));
            };
            let struck = |injected: fault::Injected| McpError::Gone {
                server: spec.name.clone(),
                why: injected.to_string(),
            };
            fault::point(fault::MCP_BEFORE).map_err(struck)?;
            let result = connection.call(&offer.tool, call).await?;
            fault::point(fault::MCP_AFTER).map_err(struck)?;
            Ok(CallAnswer::of(&spec.name, &offer.tool, result, max_bytes))
        };
        done.await
            .unwrap_or_else(|error: McpError| CallAnswer::failed(&error))
    }

    /// The status of the servers; an unused server has an entry, too.
    #[must_use]
    pub fn status(&self) -> Vec<ServerStatus> {
        let servers = self.0.servers();
        let mut all: Vec<ServerStatus> = servers
            .iter()
            .flatten()
            .map(|((_, workdir), server)| server.status(workdir.is_none()))
            .collect();
        let unused = self
            .0
            .specs
            .iter()
            .filter(|spec| all.iter().all(|status| status.server != spec.name))
            .map(|spec| ServerStatus::unused(spec));
        let unused: Vec<ServerStatus> = unused.collect();
        all.extend(unused);
        all.sort_by(|a, b| (&a.server, &a.workdir).cmp(&(&b.server, &b.workdir)));
        all
    }

    /// Changes whenever a server reports a change of its tools.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Ends all servers for good and waits for them, at most `within`. Returns whether all are gone.
    pub async fn close(&self, within: Duration) -> bool {
        let servers = self.0.servers().take().unwrap_or_default();
        let closing = join_all(servers.values().map(|server| server.close()));
        timeout(within, closing).await.is_ok()
    }

    /// A session in `workdir` was closed: its servers end after a short time without use. If another session is idle
    /// there, its next call starts them again.
    pub(crate) fn release(&self, workdir: &Path) {
        let servers = self.0.servers();
        let own = servers
            .iter()
            .flatten()
            .filter(|((_, place), _)| place.as_deref() == Some(workdir));
        for (_, server) in own {
            let server = Arc::downgrade(server);
            tokio::spawn(async move {
                tokio::time::sleep(RELEASED).await;
                if let Some(server) = server.upgrade() {
                    server.rest_if_idle(RELEASED).await;
                }
            });
        }
    }

    fn server(&self, spec: &Arc<ServerSpec>, workdir: &Path) -> Result<InUse, McpError> {
        if let Some(problem) = &spec.lacks {
            return Err(McpError::Spec {
                server: spec.name.clone(),
                problem: problem.clone(),
            });
        }
        let own = (spec.scope == Scope::Workdir).then(|| workdir.to_owned());
        let place = (spec.name.clone(), own);
        let mut guard = self.0.servers();
        let servers = guard.as_mut().ok_or(McpError::Closed)?;
        if let Some(server) = servers.get(&place) {
            return Ok(server.used());
        }
        if servers.len() >= self.0.bounds.servers {
            make_room(servers)?;
        }
        let server = Arc::new(Server::new(
            Arc::clone(spec),
            workdir,
            Arc::clone(&self.0.changes),
        ));
        let used = server.used();
        servers.insert(place, server);
        Ok(used)
    }
}

impl Inner {
    fn servers(&self) -> MutexGuard<'_, Servers> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the server that was idle for the longest time.
fn make_room(servers: &mut HashMap<ServerKey, Arc<Server>>) -> Result<(), McpError> {
    let longest = servers
        .iter()
        .filter_map(|(place, server)| Some((server.idle_for()?, place.clone())))
        .max();
    let removed = longest.and_then(|(_, place)| servers.remove(&place));
    let Some(server) = removed else {
        return Err(McpError::Full {
            running: servers.len(),
        });
    };
    tokio::spawn(async move { server.close().await });
    Ok(())
}
