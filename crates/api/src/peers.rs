//! Requests about sessions of other nodes: they are passed on to the owner, once.
//!
//! Invariant I9: only the owner changes a session. A request that finds it elsewhere has changed nothing here, so it may run
//! there as a whole.

use crate::api::{Api, COMMAND, fault_of};
use crate::replay::FeedSubscription;
use crate::sight::Caller;
use agentd_actor_kit::{FeedFrame, SupervisorMsg};
use agentd_node_keys::{Arrived, Proof, PublicKey, Verified, Vouched};
use agentd_protocol::{Delta, Fault, FleetNode, Labels, Placing, SessionId, Status};
use agentd_store::{AWAY, Away, ELSEWHERE, Owner, StoreError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a request follows a session that moves.
const PATIENCE: Duration = Duration::from_secs(12);
/// How often to look whether a node that does not answer still has the session.
const LOOK: Duration = Duration::from_secs(2);
/// The fault codes of requests that have not run, and whose session is about to move.
const MOVES: [&str; 3] = [ELSEWHERE, NODE_GONE, "draining"];
/// The pause before it looks again.
const AGAIN: Duration = Duration::from_millis(250);
/// The fault code of a node to which a request could not be sent, so that it has not run.
pub const NODE_GONE: &str = "node_gone";
/// The fault code of a request for a new session on a node that takes none.
pub(crate) const NOT_OPEN: &str = "node_not_open";
/// Frames queued for another node. Beyond that its viewers miss fragments, never events.
pub(crate) const FRAGMENTS: usize = 1_024;

/// A request that another node passes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerCall {
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

impl PeerCall {
    pub(crate) fn new(method: &str, params: &Value) -> Self {
        Self {
            method: method.to_owned(),
            params: params.clone(),
        }
    }
}

/// What a viewer at another node wants of a session of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerFollow {
    /// The session.
    pub session: SessionId,
    /// Live fragments; the events come from the store.
    pub deltas: bool,
    /// It may decide, so questions need not be denied because nobody is there.
    pub decides: bool,
}

/// Keeps a viewer known at the node of its session. It ends when dropped.
pub type Relay = Arc<dyn Any + Send + Sync>;

/// The live fragments of a session, for a viewer at another node.
#[derive(Debug)]
pub struct Fragments(pub(crate) FeedSubscription);

impl Fragments {
    /// The next ones; `None`: the subscription is over.
    pub async fn next(&mut self) -> Option<Vec<Arc<Delta>>> {
        let batch = self.0.next().await;
        let over = batch.is_empty() || batch.iter().any(|frame| matches!(frame, FeedFrame::Lagged));
        let delta = |frame| match frame {
            FeedFrame::Delta(delta) => Some(delta),
            FeedFrame::Event(_) | FeedFrame::Lagged => None,
        };
        (!over).then(|| batch.into_iter().filter_map(delta).collect())
    }
}

/// Statuses that only the fleet knows.
pub type Statuses = BTreeMap<SessionId, Status>;

/// The other nodes of the fleet.
#[async_trait]
pub trait Peers: Send + Sync + Debug {
    /// The live node that owns a session, unless it is this one.
    async fn owner(&self, session: SessionId) -> Result<Option<Owner>, StoreError>;
    /// Which sessions this node may have.
    fn placing(&self) -> Placing;
    /// The sessions that would continue by themselves, and that no live node may run. Lately, and cheap.
    fn stranded(&self) -> Arc<Statuses>;
    /// Another live node that may run a session.
    async fn host(&self, session: SessionId) -> Result<Option<Owner>, StoreError>;
    /// Gives up a session whose files are not here. Returns whether it is one.
    async fn give_back(&self, session: SessionId) -> Result<bool, StoreError>;
    /// The load of this node, if another one has clearly less. Lately, and cheap.
    fn busier(&self) -> Option<u32>;
    /// Among the other nodes that take new sessions and have these labels, the one with the least load. With a directory and a
    /// load: only one of whose shared paths the directory is below, and that has clearly less load.
    async fn open_node(
        &self,
        requires: &Labels,
        better: Option<(&str, u32)>,
    ) -> Result<Option<Owner>, StoreError>;
    /// Why this node may not run a session; `None`: it may.
    async fn away(&self, session: SessionId) -> Result<Option<Away>, StoreError>;
    /// Passes a request on for the caller that `by` proves.
    async fn call(&self, owner: &Owner, by: Proof, call: &PeerCall) -> Result<Value, Fault>;
    /// The nodes, by name.
    async fn nodes(&self) -> Result<Vec<FleetNode>, StoreError>;
    /// Says which sessions a node may have. Returns whether there is such a live node.
    async fn place(&self, name: &str, placing: Placing) -> Result<bool, StoreError>;
    /// Verifies the head of a request of another node.
    async fn vouch(&self, arrived: &Arrived<'_>) -> Result<Vouched, Fault>;
    /// The text that proves an answer to a request of another node.
    fn prove_answer(&self, request: &Verified, body: &[u8]) -> String;
    /// Replaces the key of this node. Returns the new public key.
    async fn rotate_key(&self) -> Result<PublicKey, Fault>;
    /// Removes the keys of another node for good. Returns whether it had one.
    async fn remove_key(&self, name: &str) -> Result<bool, Fault>;
    /// Lets a node whose key was removed join with a new one. Returns whether there is such a node.
    async fn admit_key(&self, name: &str) -> Result<bool, Fault>;
    /// Passes the live fragments of a session to the feed of this node while another one owns it.
    fn relay(&self, follow: PeerFollow) -> Relay;
}

/// Returns when the session no longer belongs to this owner, which then may never answer. An owner that has yet to take it
/// over has no session to lose, unless another one takes it.
async fn lost(peers: &dyn Peers, session: SessionId, owner: &Owner, mut had: bool) {
    loop {
        sleep(LOOK).await;
        let Ok(now) = peers.owner(session).await else {
            continue;
        };
        let has = now.as_ref() == Some(owner);
        had |= has;
        if !has && (had || now.is_some()) {
            // An answer that is on its way comes first.
            return sleep(AGAIN).await;
        }
    }
}

fn unanswered(owner: &Owner) -> Fault {
    let message = format!(
        "node {} lost the session before it answered; the request may or may not have run",
        owner.name
    );
    Fault::unavailable("node_unreachable", message).hint("retry with the same key")
}

impl Api {
    /// Runs a method here, or where its session is, or where new sessions may be.
    pub(crate) async fn anywhere(
        self: &Arc<Self>,
        who: &Caller,
        method: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        let Some(peers) = &self.parts.peers else {
            return self.here(who, method, params).await;
        };
        if method == "session.resume" && params.get("workdir").is_some_and(|dir| !dir.is_null()) {
            // The directory is one of this node.
            return self.here(who, method, params).await;
        }
        if method == "session.create"
            && let Some(load) = peers.busier()
            && let Some(answer) = self.at_less_busy((peers.as_ref(), load), who, &params).await
        {
            return answer;
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let fault = match self.here(who, method, params.clone()).await {
                Err(fault) if [ELSEWHERE, AWAY, NOT_OPEN].contains(&fault.code.as_str()) => fault,
                answer => return answer,
            };
            match self.there(who, (method, &params), fault).await {
                // The session has moved on, or moves when its node is found to be gone.
                Err(fault) if MOVES.contains(&fault.code.as_str()) && Instant::now() < deadline => {}
                answer => return answer,
            }
            sleep(AGAIN).await;
        }
    }

    /// Passes a request on to the owner of the session that this fault names, or to a node that takes new sessions. Without
    /// such a node, the fault is the answer.
    pub(crate) async fn there(
        &self,
        who: &Caller,
        (method, params): (&str, &Value),
        fault: Fault,
    ) -> Result<Value, Fault> {
        let Some(peers) = &self.parts.peers else {
            return Err(fault);
        };
        let session = StoreError::session_elsewhere(&fault);
        let had = fault.code == ELSEWHERE;
        let owner = match session {
            Some(session) if fault.code == AWAY => peers.host(session).await?,
            Some(session) => peers.owner(session).await?,
            None if fault.code == NOT_OPEN => {
                peers.open_node(&self.required(who, params).await?, None).await?
            }
            None => None,
        };
        let owner = owner.ok_or(fault)?;
        let (by, call) = (who.proof()?, PeerCall::new(method, params));
        let Some(session) = session else {
            return peers.call(&owner, by, &call).await;
        };
        tokio::select! {
            answer = peers.call(&owner, by, &call) => answer,
            () = lost(peers.as_ref(), session, &owner, had) => Err(unanswered(&owner)),
        }
    }

    /// Refuses what reads the files of a session if another node has it or its files, with the fault that [`Self::anywhere`]
    /// passes on.
    pub(crate) async fn files_here(&self, session: SessionId) -> Result<(), Fault> {
        self.owned_here(session).await?;
        let Some(peers) = &self.parts.peers else {
            return Ok(());
        };
        match peers.away(session).await? {
            None => Ok(()),
            Some(away) => Err(Fault::from(StoreError::Away { session, away })),
        }
    }

    /// Refuses what only the owner of a session may do, with the fault that [`Self::anywhere`] passes on.
    pub(crate) async fn owned_here(&self, session: SessionId) -> Result<(), Fault> {
        let Some(peers) = &self.parts.peers else {
            return Ok(());
        };
        match peers.owner(session).await? {
            None => Ok(()),
            Some(owner) => Err(Fault::from(StoreError::Elsewhere {
                session,
                node: owner.name,
            })),
        }
    }

    /// A session whose files are elsewhere was only here for a command that needs none.
    pub(crate) async fn give_back(&self, session: SessionId) -> Result<(), Fault> {
        let Some(peers) = &self.parts.peers else {
            return Ok(());
        };
        if !peers.give_back(session).await? {
            return Ok(());
        }
        let mut tree = self.all_below(session).await?;
        tree.push(session);
        for session in tree {
            let evict = |done| SupervisorMsg::Evict { session, done };
            let evicted = self.parts.supervisor.call(COMMAND, evict).await;
            evicted.map_err(fault_of)?;
        }
        Ok(())
    }

    /// The relays for a viewer of this node while another node owns the session.
    pub(crate) fn relays(&self, session: SessionId, deltas: bool, decides: bool) -> Vec<Relay> {
        let Some(peers) = &self.parts.peers else {
            return Vec::new();
        };
        // All viewers share the fragments, and all who decide share a sign of it.
        let fragments = PeerFollow {
            session,
            deltas: true,
            decides: false,
        };
        let presence = PeerFollow {
            session,
            deltas: false,
            decides: true,
        };
        let wanted = deltas.then_some(fragments).into_iter();
        let wanted = wanted.chain(decides.then_some(presence));
        wanted.map(|follow| peers.relay(follow)).collect()
    }

    /// Takes note of tokens that were created or revoked on other nodes.
    ///
    /// # Errors
    /// The store's fault.
    pub async fn reread_tokens(&self) -> Result<(), Fault> {
        self.tokens.reread(&self.parts.backend, self.parts.clock).await
    }
}
