//! All tool servers of a node, outside its sessions.

use crate::answer::Answer;
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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// So long nobody may have used a server for it to end after a session of its directory was closed. Sessions that follow
/// one another share it.
const RELEASED: Duration = Duration::from_secs(30);

/// How much a pool may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Servers that are kept at the same time, over all working directories.
    pub servers: usize,
    /// How long one who wants to know what is offered waits for servers that are being started.
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

/// What one server offers, or why nothing is known of it.
#[derive(Debug)]
pub struct Listing {
    /// Its name.
    pub server: String,
    /// Its tools.
    pub offers: Result<Arc<Offers>, McpError>,
}

/// The tool servers of a node. Clones are the same pool; servers are ended with the last one.
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

/// The place of a server: its name, and its working directory unless it is shared.
type Place = (String, Option<PathBuf>);

/// Nothing when the pool was closed.
type Servers = Option<HashMap<Place, Arc<Server>>>;

impl Pool {
    /// A pool; starts no server yet. To be called in a runtime.
    ///
    /// # Errors
    /// When a server is configured wrongly, or two have one name.
    pub fn new(
        servers: Vec<ServerSpec>,
        launch: Arc<dyn Launch>,
        http: reqwest::Client,
    ) -> Result<Self, McpError> {
        Self::bounded(servers, launch, http, Bounds::default())
    }

    /// The same with bounds.
    ///
    /// # Errors
    /// When a server is configured wrongly, or two have one name.
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
                    problem: "another one has its name".to_owned(),
                });
            }
        }
        let idle = servers.iter().map(|spec| spec.limits.idle).min();
        let inner = Arc::new(Inner {
            specs: servers.into_iter().map(Arc::new).collect(),
            ways: Ways { launch, http },
            bounds,
            servers: Mutex::new(Some(HashMap::new())),
            changes: Arc::default(),
        });
        if let Some(idle) = idle {
            let every = (idle / 4).clamp(Duration::from_secs(1), Duration::from_secs(60));
            tokio::spawn(sweep(Arc::downgrade(&inner), every));
        }
        Ok(Self(inner))
    }

    /// Whether no server is configured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.specs.is_empty()
    }

    /// What the servers offer to a session in `workdir`, in the order of the configuration. They are asked side by side,
    /// and one that fails costs only itself.
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

    /// The same as far as it is known within the pool's patience. A server that is being started goes on with that.
    pub(crate) async fn offers_soon(&self, workdir: &Path, servers: &[String]) -> Vec<Listing> {
        let patience = self.0.bounds.patience;
        let ask = |spec: &Arc<ServerSpec>| {
            let (pool, spec, workdir) = (self.clone(), Arc::clone(spec), workdir.to_owned());
            let server = spec.name.clone();
            let asked = tokio::spawn(async move { pool.offers_of(&spec, &workdir).await });
            async move {
                let slow = McpError::Slow {
                    server: server.clone(),
                    what: "yet which tools it has",
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

    /// The tools that are known of servers that were used, without asking any.
    #[must_use]
    pub fn known(&self) -> Vec<ToolEntry> {
        let servers = self.0.servers();
        let all = servers.iter().flat_map(HashMap::values);
        let mut tools: Vec<ToolEntry> = all.flat_map(|server| server.known()).collect();
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        tools.dedup_by(|a, b| a.spec().name == b.spec().name);
        tools
    }

    /// Calls a tool for a session in `workdir`, to its one answer. Dropping the future tells the server that nobody waits
    /// any more; what it did by then is done.
    pub async fn call(&self, workdir: &Path, call: Call) -> Answer {
        let began = Instant::now();
        self.answer(workdir, call).await.within(began.elapsed())
    }

    async fn answer(&self, workdir: &Path, call: Call) -> Answer {
        let spec = server_of(&call.name).and_then(|name| self.0.specs.iter().find(|spec| spec.name == name));
        let Some(spec) = spec else {
            let names: Vec<&str> = self.0.specs.iter().map(|spec| spec.name.as_str()).collect();
            return Answer::no_such_server(&call.name, &names);
        };
        let max_bytes = call.max_bytes;
        let done = async {
            let server = self.server(spec, workdir)?;
            let (connection, offers) = server.connected(&self.0.ways).await?;
            let Some(offer) = offers.tools.iter().find(|offer| offer.name == call.name) else {
                let names: Vec<&str> = offers.tools.iter().map(|offer| offer.name.as_str()).collect();
                return Ok(Answer::no_such_tool(&call.name, &spec.name, &names));
            };
            let struck = |injected: fault::Injected| McpError::Gone {
                server: spec.name.clone(),
                why: injected.to_string(),
            };
            fault::point(fault::MCP_BEFORE).map_err(struck)?;
            let result = connection.call(&offer.tool, call).await?;
            fault::point(fault::MCP_AFTER).map_err(struck)?;
            Ok(Answer::of(&spec.name, result, max_bytes))
        };
        done.await
            .unwrap_or_else(|error: McpError| Answer::failed(&error))
    }

    /// How the servers do; one that was not used yet has one row, too.
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

    /// Changes whenever a server says that its tools are others now.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Ends all servers for good and waits until they are gone, at most `within`. Whether they are.
    pub async fn close(&self, within: Duration) -> bool {
        let servers = self.0.servers().take().unwrap_or_default();
        let closing = join_all(servers.values().map(|server| server.close()));
        timeout(within, closing).await.is_ok()
    }

    /// A session in `workdir` was closed: its servers end when nobody uses them for a moment. Another session there that
    /// is at rest has them started again with its next call.
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

/// Ends the server that has been idle for longest.
fn make_room(servers: &mut HashMap<Place, Arc<Server>>) -> Result<(), McpError> {
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

/// Ends idle servers, until the pool is gone.
async fn sweep(pool: Weak<Inner>, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(pool) = pool.upgrade() else { return };
        let servers: Vec<Arc<Server>> = pool
            .servers()
            .iter()
            .flatten()
            .map(|(_, server)| Arc::clone(server))
            .collect();
        drop(pool);
        join_all(
            servers
                .iter()
                .map(|server| server.rest_if_idle(server.spec.limits.idle)),
        )
        .await;
    }
}
