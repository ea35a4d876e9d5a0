//! One server of the pool: its connection, started on demand, and its health.

use crate::cleaning::words;
use crate::connection::Connection;
use crate::error::McpError;
use crate::health::Health;
use crate::hearing::Hearing;
use crate::offer::Offers;
use crate::reach::Ways;
use crate::spec::ServerSpec;
use agentd_tools::ToolEntry;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// The longest delay of a restart that a caller waits for; a longer one is reported as an error.
const SHORT_REST: Duration = Duration::from_secs(2);

/// The current state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// Not needed yet, or ended because it was idle.
    Stopped,
    /// Starting.
    Starting,
    /// Running.
    Running,
    /// Failed; the next use starts it again.
    Failed,
}

/// The status of a server, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its name.
    pub server: String,
    /// Its working directory; `None` if it is shared.
    pub workdir: Option<PathBuf>,
    /// Its state.
    pub state: ServerState,
    /// Calls in progress.
    pub busy: usize,
    /// The number of tools that it offers, as far as known.
    pub tools: usize,
    /// The number of restarts.
    pub restarts: u64,
    /// Its last failure.
    pub last_error: Option<String>,
}

impl ServerStatus {
    /// The status of a server that was never used.
    pub(crate) fn unused(spec: &ServerSpec) -> Self {
        Self {
            server: spec.name.clone(),
            workdir: None,
            state: if spec.lacks.is_some() {
                ServerState::Failed
            } else {
                ServerState::Stopped
            },
            busy: 0,
            tools: 0,
            restarts: 0,
            last_error: spec.lacks.clone(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) spec: Arc<ServerSpec>,
    workdir: PathBuf,
    changes: Arc<watch::Sender<u64>>,
    slot: tokio::sync::Mutex<Slot>,
    usage: Mutex<Usage>,
    starts: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    up: Option<Arc<Connection>>,
    /// The tools that it offered last.
    known: Option<Arc<Offers>>,
    health: Health,
    closed: bool,
}

#[derive(Debug)]
struct Usage {
    busy: usize,
    last: Instant,
}

/// A use of a server: it does not end as idle meanwhile.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Server>);

impl Drop for InUse {
    fn drop(&mut self) {
        let mut usage = self.0.usage();
        usage.busy = usage.busy.saturating_sub(1);
        usage.last = Instant::now();
    }
}

impl Server {
    pub(crate) fn new(spec: Arc<ServerSpec>, workdir: &Path, changes: Arc<watch::Sender<u64>>) -> Self {
        Self {
            spec,
            workdir: workdir.to_owned(),
            changes,
            slot: tokio::sync::Mutex::default(),
            usage: Mutex::new(Usage {
                busy: 0,
                last: Instant::now(),
            }),
            starts: AtomicU64::new(0),
        }
    }

    /// The tools that it offered last; empty while it is starting.
    pub(crate) fn known(&self) -> Vec<ToolEntry> {
        let slot = self.slot.try_lock();
        let known = slot.ok().and_then(|slot| slot.known.clone());
        known.map(|offers| offers.made.clone()).unwrap_or_default()
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn used(self: &Arc<Self>) -> InUse {
        self.usage().busy += 1;
        InUse(Arc::clone(self))
    }

    /// How long it has been unused; `None` while it is in use.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let usage = self.usage();
        (usage.busy == 0).then(|| usage.last.elapsed())
    }

    pub(crate) fn status(&self, shared: bool) -> ServerStatus {
        let mut status = ServerStatus {
            server: self.spec.name.clone(),
            workdir: (!shared).then(|| self.workdir.clone()),
            state: ServerState::Starting,
            busy: self.usage().busy,
            tools: 0,
            restarts: self.starts.load(Ordering::Relaxed).saturating_sub(1),
            last_error: None,
        };
        // The lock is held only while it starts or ends.
        if let Ok(slot) = self.slot.try_lock() {
            let ended = slot.up.as_ref().map(|up| up.ended());
            status.state = match &ended {
                Some(None) => ServerState::Running,
                Some(Some(_)) => ServerState::Failed,
                None if slot.health.last().is_some() => ServerState::Failed,
                None => ServerState::Stopped,
            };
            status.tools = slot.known.as_ref().map_or(0, |known| known.tools.len());
            status.last_error = ended.flatten().or_else(|| slot.health.last().map(str::to_owned));
        }
        status
    }
}

impl InUse {
    /// The tools that it offers. Does not start a server that ended because it was idle.
    pub(crate) async fn offers(&self, ways: &Ways) -> Result<Arc<Offers>, McpError> {
        {
            let slot = self.locked().await?;
            if slot.up.is_none()
                && let Some(known) = &slot.known
            {
                return Ok(Arc::clone(known));
            }
        }
        self.connected(ways).await.map(|(_, offers)| offers)
    }

    /// Its connection and its tools; starts it if necessary.
    pub(crate) async fn connected(&self, ways: &Ways) -> Result<(Arc<Connection>, Arc<Offers>), McpError> {
        let server = &self.0;
        let mut slot = self.locked().await?;
        if slot.closed {
            return Err(McpError::Closed);
        }
        if let Some(why) = slot.up.as_ref().and_then(|up| up.ended()) {
            tracing::warn!(server = server.spec.name, "a tool server failed: {why}");
            slot.up = None;
            slot.health.failed(why, Instant::now());
        }
        let connection = match &slot.up {
            Some(up) => Arc::clone(up),
            None => self.started(&mut slot, ways).await?,
        };
        let offers = connection.offers().await?;
        slot.known = Some(Arc::clone(&offers));
        Ok((connection, offers))
    }

    async fn started(&self, slot: &mut Slot, ways: &Ways) -> Result<Arc<Connection>, McpError> {
        let server = &self.0;
        while let Err(rest) = slot.health.may_start(Instant::now()) {
            if rest.after > SHORT_REST {
                return Err(McpError::Resting {
                    server: server.spec.name.clone(),
                    failures: rest.failures,
                    after: rest.after,
                    why: rest.why,
                });
            }
            sleep(rest.after).await;
        }
        server.starts.fetch_add(1, Ordering::Relaxed);
        let hearing = Hearing::new(Arc::clone(&server.changes));
        match Connection::open(&server.spec, &server.workdir, ways, hearing).await {
            Ok(connection) => {
                slot.up = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                let why = words(&crate::reach::with_causes(&error));
                tracing::warn!(server = server.spec.name, "a tool server did not start: {why}");
                slot.health.failed(why, Instant::now());
                Err(error)
            }
        }
    }

    /// Locks the slot. Each holder starts or asks the server with deadlines; several may be ahead.
    async fn locked(&self) -> Result<tokio::sync::MutexGuard<'_, Slot>, McpError> {
        let within = self.0.spec.limits.start * 3;
        timeout(within, self.0.slot.lock())
            .await
            .map_err(|_| McpError::Slow {
                server: self.0.spec.name.clone(),
                what: "the requests before this one",
                within,
            })
    }
}

impl Server {
    /// Ends it if it was unused for this long.
    pub(crate) async fn rest_if_idle(&self, limit: Duration) {
        let idle = |server: &Self| server.idle_for().is_some_and(|time| time >= limit);
        if !idle(self) {
            return;
        }
        let Ok(mut slot) = self.slot.try_lock() else {
            return;
        };
        // A caller that arrived meanwhile waits for the slot and starts it again.
        if idle(self)
            && let Some(up) = slot.up.take()
        {
            if let Some(why) = up.ended() {
                slot.health.failed(why, Instant::now());
            }
            drop(slot);
            up.close().await;
        }
    }

    /// Ends it for good.
    pub(crate) async fn close(&self) {
        let mut slot = self.slot.lock().await;
        slot.closed = true;
        if let Some(up) = slot.up.take() {
            up.close().await;
        }
    }
}
