//! The membership of this node in a fleet: signs of life, the lease, what it takes over and gives up. `agentd_store` decides
//! ([`Keeper`], [`Placer`]); this carries out what it decides.

use crate::children::Handles;
use crate::error::NodeError;
use crate::loads::Loads;
use crate::node::end_orphans;
use crate::peers::{HttpPeers, News};
use crate::signing::{OwnKey, Signing};
use agentd_actor_kit::{Clock, FeedMsg, Handle, SupervisorMsg};
use agentd_api::{Peers, Statuses, StopRequest};
use agentd_protocol::{Placing, RunState, SessionId, Status, WaitReason};
use agentd_sandbox::CommandDeadline;
use agentd_settings::{FleetConfig, Settings};
use agentd_store::{
    Backend, Beaten, Duty, Fleet, HAND_OVER, Joining, Keeper, Lease, Orphans, Placer, Standing, StoreError,
    StoreLock, Stranded,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

/// How long the supervisor, or the store while the node stops, may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// After this time, orphans that this node could not take over are tried again although nothing seems to have changed.
const TRY_AGAIN: Duration = Duration::from_secs(60);

/// The membership. Dropped, it gives no more signs of life.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) fleet: Arc<dyn Fleet>,
    pub(crate) lease: Lease,
    pub(crate) joining: Joining,
    key: Arc<OwnKey>,
    standing: watch::Receiver<Standing>,
    stranded: watch::Sender<Arc<Statuses>>,
    /// The load of this node, if another one has clearly less.
    busier: watch::Sender<Option<u32>>,
    beats: JoinHandle<()>,
    /// The data directory has one user, so an earlier incarnation with its identity has ended.
    _lock: StoreLock,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.beats.abort();
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
        // Others may take over the sessions of the earlier incarnation as soon as this one has joined.
        end_orphans(data_dir).await?;
        let key = Arc::new(OwnKey::open(data_dir)?);
        let joining = Joining {
            identity: identity(data_dir, clock)?,
            key: key.current().public().to_string(),
            ..joining
        };
        let asked = CommandDeadline::clock();
        let incarnation = fleet.join(&joining).await?;
        let keeper = Keeper::new(joining.ttl, asked, incarnation);
        let ends = Ends::begin(keeper.lease())?;
        let lease = ends.lease.clone();
        let (told, standing) = watch::channel(keeper.standing());
        let beats = Beats {
            fleet: Arc::clone(&fleet),
            joining: joining.clone(),
            key: Arc::clone(&key),
            ends,
            told,
            keeper,
        };
        Ok(Some(Self {
            fleet,
            lease,
            joining,
            key,
            standing,
            stranded: watch::channel(Arc::default()).0,
            busier: watch::channel(None).0,
            beats: tokio::spawn(beats.run()),
            _lock: lock,
        }))
    }

    /// Gives up all sessions, of which none is in memory any more. A drain without running work ends before its first round of
    /// [`hand_over`].
    pub(crate) async fn give_up(&self) {
        match timeout(PATIENCE, self.fleet.hand_over(&[])).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "could not give up the sessions of this node"),
            Err(_) => tracing::warn!("could not give up the sessions of this node in time"),
        }
    }

    /// The other nodes, as the API sees them.
    pub(crate) fn peers(
        &self,
        http: &reqwest::Client,
        feed: Handle<FeedMsg>,
        config: &FleetConfig,
    ) -> Arc<dyn Peers> {
        let fleet = Arc::clone(&self.fleet);
        let signing = Signing::new(&self.joining.name, &self.key, &fleet, &self.standing, config);
        let standing = self.standing.clone();
        Arc::new(HttpPeers::new(
            fleet,
            http.clone(),
            feed,
            &Arc::new(signing),
            News {
                standing,
                stranded: self.stranded.subscribe(),
                busier: self.busier.subscribe(),
            },
        ))
    }

    /// Reports the load of this node.
    pub(crate) fn loads(&self, handles: &Handles, settings: &Settings) -> Loads {
        Loads {
            fleet: Arc::clone(&self.fleet),
            supervisor: handles.supervisor.clone(),
            tools: handles.tools.clone(),
            limits: (settings.limits.sessions_hot, settings.tools.max_running),
            busier: self.busier.clone(),
        }
    }

    /// Takes over, drops and gives up sessions as the membership requires.
    pub(crate) fn placement(
        &self,
        supervisor: Handle<SupervisorMsg>,
        stop: mpsc::Sender<StopRequest>,
    ) -> Placement {
        Placement {
            fleet: Arc::clone(&self.fleet),
            standing: self.standing.clone(),
            placer: Placer::new(self.standing.borrow().incarnation),
            stranded: self.stranded.clone(),
            seen: None,
            supervisor,
            stop,
        }
    }
}

/// The ends of this node's lease: after it no effect starts, and what commands do ends.
struct Ends {
    lease: Lease,
    commands: CommandDeadline,
}

impl Ends {
    /// All times are on the clock of [`CommandDeadline`].
    fn begin(end: Duration) -> Result<Self, NodeError> {
        let commands = CommandDeadline::begin(end).map_err(|error| {
            NodeError::Unsupported(format!("a timer for the lease of this node: {error}"))
        })?;
        let ends = Self {
            lease: Lease::default(),
            commands,
        };
        ends.until(end);
        Ok(ends)
    }

    fn until(&self, end: Duration) {
        // The clock of the lease stands still while the machine is suspended.
        let left = end.saturating_sub(CommandDeadline::clock());
        self.lease.until(Instant::now() + left);
        if let Err(error) = self.commands.until(end) {
            tracing::error!(%error, "could not set the time at which commands end; they end with the lease before");
        }
    }
}

/// Gives signs of life.
struct Beats {
    fleet: Arc<dyn Fleet>,
    joining: Joining,
    key: Arc<OwnKey>,
    ends: Ends,
    told: watch::Sender<Standing>,
    keeper: Keeper,
}

impl Beats {
    async fn run(mut self) {
        let ttl = self.joining.ttl;
        loop {
            sleep(self.keeper.pause()).await;
            self.keeper.asks(CommandDeadline::clock());
            let beaten = self.fleet.beat(ttl).await;
            let mut error = beaten.as_ref().err().map(ToString::to_string);
            let mut came = self.keeper.beaten(beaten.as_ref().copied());
            if came == Beaten::Join {
                tracing::error!(
                    "other nodes took note that this one was gone; dropping all sessions and joining again"
                );
                // Others may have the sessions by now.
                self.ends.until(Duration::ZERO);
                self.joining.key = self.key.current().public().to_string();
                let joined = self.fleet.join(&self.joining).await;
                error = joined.as_ref().err().map(ToString::to_string);
                came = self.keeper.joined(joined.as_ref().copied());
            }
            match came {
                Beaten::Renewed(until) => {
                    self.ends.until(until);
                    self.told.send_replace(self.keeper.standing());
                }
                Beaten::Missed { first: true } => {
                    let error = error.unwrap_or_default();
                    tracing::warn!(%error, "could not give a sign of life to the database; trying again");
                }
                Beaten::Missed { first: false } | Beaten::Join => {}
            }
        }
    }
}

/// Takes over, drops and gives up sessions.
#[derive(Debug)]
pub(crate) struct Placement {
    fleet: Arc<dyn Fleet>,
    standing: watch::Receiver<Standing>,
    placer: Placer,
    /// The sessions that no live node may run.
    stranded: watch::Sender<Arc<Statuses>>,
    /// The orphans of which this node could take over none, and when it tried.
    seen: Option<(Orphans, Standing, Instant)>,
    supervisor: Handle<SupervisorMsg>,
    stop: mpsc::Sender<StopRequest>,
}

impl Placement {
    /// Runs until dropped.
    pub(crate) async fn run(&mut self) {
        loop {
            let standing = *self.standing.borrow_and_update();
            let mut duty = self.placer.duty(standing);
            if duty == Duty::DropAll {
                self.drop_all().await;
                self.placer.dropped(standing);
                duty = self.placer.duty(standing);
            }
            if duty == Duty::Drain && self.stop.try_send(StopRequest::Drain).is_ok() {
                self.placer.drains();
            }
            if let Err(error) = self.look(standing, duty).await {
                tracing::warn!(%error, "could not look for sessions to take over");
            }
            if self.standing.changed().await.is_err() {
                // The node stops.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Takes over the sessions that this node may run, and notes those that no node may run. It tries again only after
    /// something has changed, or after a minute: sessions that wait, perhaps for days, cost one cheap query.
    async fn look(&mut self, standing: Standing, duty: Duty) -> Result<(), StoreError> {
        let orphans = self.fleet.orphans().await?;
        let tried = self.seen.filter(|(_, _, at)| at.elapsed() < TRY_AGAIN);
        if tried.is_some_and(|(seen, stood, _)| (seen, stood) == (orphans, standing)) {
            return Ok(());
        }
        // A cordoned node gets back only what is its own.
        let takes = duty == Duty::Adopt || standing.placing == Placing::Cordoned;
        let rows = if takes && orphans.sessions > 0 {
            self.fleet.adopt().await?
        } else {
            Vec::new()
        };
        if rows.is_empty() {
            let stranded = match orphans.sessions {
                0 => Vec::new(),
                _ => self.fleet.stranded().await?,
            };
            self.stranded.send_replace(Arc::new(statuses(stranded)));
            self.seen = Some((orphans, standing, Instant::now()));
        } else {
            let sessions = rows.len();
            tracing::info!(sessions, "taking over sessions that no live node has");
            // If it is down, the next one finds them in the store.
            self.supervisor.cast(SupervisorMsg::Found { rows });
        }
        Ok(())
    }

    /// Others may have the sessions by now: their loops end without writing.
    async fn drop_all(&self) {
        for session in awake(&self.supervisor).await.unwrap_or_default() {
            let evict = |done| SupervisorMsg::Evict { session, done };
            if let Err(error) = self.supervisor.call(PATIENCE, evict).await {
                tracing::warn!(%session, %error, "could not drop a session");
            }
        }
    }
}

/// The statuses of sessions that no live node may run, for lists. They are not in the logs, so that a node that returns
/// only has to take over its sessions.
fn statuses(stranded: Vec<Stranded>) -> Statuses {
    let status = |Stranded { session, away, since }: Stranded| {
        let reason = format!("it {away}; {}", away.ways_out(session));
        let state = RunState::Waiting(WaitReason::Workspace);
        (session, Status::new(state, reason, since))
    };
    stranded.into_iter().map(status).collect()
}

/// The sessions in memory; `None`: the supervisor does not answer.
async fn awake(supervisor: &Handle<SupervisorMsg>) -> Option<Vec<SessionId>> {
    let all = supervisor.call(PATIENCE, |done| SupervisorMsg::Awake { done });
    all.await.ok()
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
        let Some(keep) = awake(supervisor).await else {
            continue;
        };
        match fleet.hand_over(&keep).await {
            Ok(0) => {}
            Ok(sessions) => tracing::info!(sessions, "gave up sessions"),
            Err(error) => tracing::warn!(%error, "could not give up sessions"),
        }
    }
}
