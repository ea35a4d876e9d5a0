//! The membership of this node in a fleet: signs of life, the lease, what it takes over and gives up.
//!
//! Invariant I9: the epochs keep two owners of a session apart. The lease only limits what a node that is cut off from the
//! store does in vain.

use crate::error::NodeError;
use crate::peers::HttpPeers;
use agentd_actor_kit::{Clock, FeedMsg, Handle, SupervisorMsg};
use agentd_api::{Peers, StopRequest};
use agentd_protocol::{Placing, SessionId};
use agentd_store::{Backend, Fleet, Incarnation, Joining, Lease, StoreError, StoreLock};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

/// Signs of life per lease.
const BEATS: u32 = 6;
/// The longest time between two of them; also how often sessions are taken over.
const EVERY: Duration = Duration::from_millis(700);
/// This part of the lease is left when effects may start no more.
const MARGIN: u32 = 5;
/// How often a draining node gives up the sessions that are cold.
const HAND_OVER: Duration = Duration::from_millis(500);
/// How long the supervisor may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the last sign of life brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    incarnation: Incarnation,
    pub(crate) placing: Placing,
}

/// The membership. Dropped, it gives no more signs of life.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) fleet: Arc<dyn Fleet>,
    pub(crate) lease: Lease,
    pub(crate) joining: Joining,
    standing: watch::Receiver<Standing>,
    keeper: JoinHandle<()>,
    /// The data directory has one user, so an earlier incarnation with its identity has ended.
    _lock: StoreLock,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// The identity of a data directory, created at the first start. A copy on another host is another one.
fn identity(data_dir: &Path, clock: Clock) -> Result<String, NodeError> {
    let path = data_dir.join("node.id");
    let id = match std::fs::read_to_string(&path) {
        Ok(id) => id.trim().to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let id = clock.stamp().session().to_string();
            std::fs::write(&path, format!("{id}\n")).map_err(|error| NodeError::path(&path, error))?;
            id
        }
        Err(error) => return Err(NodeError::path(&path, error)),
    };
    let host = rustix::system::uname();
    Ok(format!("{id}@{}", host.nodename().to_string_lossy()))
}

impl Member {
    /// Joins the fleet, if the store can have one.
    ///
    /// # Errors
    /// Another process uses the data directory; a live node has the name; the store fails.
    pub(crate) async fn join(
        backend: &Arc<dyn Backend>,
        joining: Joining,
        data_dir: &Path,
        clock: Clock,
    ) -> Result<Option<Self>, NodeError> {
        let Some(fleet) = backend.fleet() else {
            return Ok(None);
        };
        let lock = StoreLock::take(&data_dir.join("node.lock"), "")?;
        let joining = Joining {
            identity: identity(data_dir, clock)?,
            ..joining
        };
        let asked = Instant::now();
        let incarnation = fleet.join(&joining).await?;
        let lease = Lease::default();
        lease.until(asked + effects(joining.ttl));
        let placing = Placing::Open;
        let (told, standing) = watch::channel(Standing { incarnation, placing });
        let keeper = Keeper {
            fleet: Arc::clone(&fleet),
            joining: joining.clone(),
            lease: lease.clone(),
            told,
        };
        Ok(Some(Self {
            fleet,
            lease,
            joining,
            standing,
            keeper: tokio::spawn(keeper.run()),
            _lock: lock,
        }))
    }

    /// The other nodes, as the API sees them.
    pub(crate) fn peers(&self, http: &reqwest::Client, feed: Handle<FeedMsg>) -> Arc<dyn Peers> {
        let fleet = Arc::clone(&self.fleet);
        let standing = self.standing.clone();
        Arc::new(HttpPeers::new(
            fleet,
            http.clone(),
            feed,
            (&self.joining.secret, standing),
        ))
    }

    /// What follows from the membership for the sessions.
    pub(crate) fn placement(
        &self,
        supervisor: Handle<SupervisorMsg>,
        stop: mpsc::Sender<StopRequest>,
    ) -> Placement {
        Placement {
            fleet: Arc::clone(&self.fleet),
            standing: self.standing.clone(),
            incarnation: self.standing.borrow().incarnation,
            supervisor,
            stop,
        }
    }
}

/// For how long after a sign of life effects may start.
fn effects(ttl: Duration) -> Duration {
    ttl - ttl / MARGIN
}

/// Gives signs of life.
struct Keeper {
    fleet: Arc<dyn Fleet>,
    joining: Joining,
    lease: Lease,
    told: watch::Sender<Standing>,
}

impl Keeper {
    async fn run(self) {
        let ttl = self.joining.ttl;
        let mut failing = false;
        loop {
            sleep(EVERY.min(ttl / BEATS)).await;
            let asked = Instant::now();
            let mut standing = *self.told.borrow();
            let beaten = match self.fleet.beat(ttl).await {
                Ok(placing) => {
                    standing.placing = placing;
                    Ok(())
                }
                Err(StoreError::NodeLost) => {
                    tracing::error!(
                        "other nodes took note that this one was gone; dropping all sessions and joining again"
                    );
                    let joined = self.fleet.join(&self.joining).await;
                    joined.map(|incarnation| standing.incarnation = incarnation)
                }
                Err(error) => Err(error),
            };
            match beaten {
                Ok(()) => {
                    self.lease.until(asked + effects(ttl));
                    self.told.send_replace(standing);
                    failing = false;
                }
                Err(_) if failing => {}
                Err(error) => {
                    tracing::warn!(%error, "could not give a sign of life to the database; trying again");
                    failing = true;
                }
            }
        }
    }
}

/// Takes over, drops and gives up sessions.
#[derive(Debug)]
pub(crate) struct Placement {
    fleet: Arc<dyn Fleet>,
    standing: watch::Receiver<Standing>,
    /// The incarnation that owns the sessions in memory.
    incarnation: Incarnation,
    supervisor: Handle<SupervisorMsg>,
    stop: mpsc::Sender<StopRequest>,
}

impl Placement {
    /// Runs until dropped.
    pub(crate) async fn run(&mut self) {
        let mut asked = false;
        loop {
            let standing = *self.standing.borrow_and_update();
            if standing.incarnation != self.incarnation {
                self.drop_all().await;
                self.incarnation = standing.incarnation;
            }
            match standing.placing {
                Placing::Open => self.adopt().await,
                Placing::Cordoned => {}
                Placing::Draining if asked => {}
                Placing::Draining => asked = self.stop.try_send(StopRequest::Drain).is_ok(),
            }
            if self.standing.changed().await.is_err() {
                // The node stops.
                std::future::pending::<()>().await;
            }
        }
    }

    async fn adopt(&self) {
        match self.fleet.adopt().await {
            Ok(rows) if rows.is_empty() => {}
            Ok(rows) => {
                tracing::info!(
                    sessions = rows.len(),
                    "taking over sessions that no live node has"
                );
                // If it is down, the next one finds them in the store.
                self.supervisor.cast(SupervisorMsg::Found { rows });
            }
            Err(error) => tracing::warn!(%error, "could not look for sessions to take over"),
        }
    }

    /// Others may have the sessions by now: their loops end without writing.
    async fn drop_all(&self) {
        for session in hot(&self.supervisor).await.unwrap_or_default() {
            let evict = |done| SupervisorMsg::Evict { session, done };
            if let Err(error) = self.supervisor.call(PATIENCE, evict).await {
                tracing::warn!(%session, %error, "could not drop a session");
            }
        }
    }
}

/// The sessions in memory; `None`: the supervisor does not answer.
async fn hot(supervisor: &Handle<SupervisorMsg>) -> Option<Vec<SessionId>> {
    let all = supervisor.call(PATIENCE, |done| SupervisorMsg::Overlay { done });
    Some(all.await.ok()?.into_keys().collect())
}

/// Gives up the sessions that are cold, again and again: a drain ends others.
pub(crate) async fn hand_over(fleet: &dyn Fleet, name: &str, supervisor: &Handle<SupervisorMsg>) {
    if let Err(error) = fleet.place(name, Placing::Draining).await {
        tracing::warn!(%error, "could not tell the fleet that this node drains");
    }
    let mut rounds = interval(HAND_OVER);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let Some(keep) = hot(supervisor).await else {
            continue;
        };
        match fleet.hand_over(&keep).await {
            Ok(0) => {}
            Ok(sessions) => tracing::info!(sessions, "gave up sessions"),
            Err(error) => tracing::warn!(%error, "could not give up sessions"),
        }
    }
}
