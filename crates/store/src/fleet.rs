//! Several nodes on one store: who is there, and how the sessions of a node that is gone reach another one.

use crate::{Away, Demand, Incarnation, Share, StoreError};
use agentd_protocol::{FleetNode, Labels, Placing, SessionId, Timestamp, listed};
use async_trait::async_trait;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::time::Instant;

/// The description of a node that joins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Joining {
    /// Its name, which no other live node has.
    pub name: String,
    /// Identifies its data directory, which at most one process uses: an earlier incarnation with it has ended.
    pub identity: String,
    /// The URL at which other nodes reach it; empty: they cannot.
    pub address: String,
    /// Its public key, as text: what it signs, others verify with it.
    pub key: String,
    /// The version of the program.
    pub version: String,
    /// How long the node counts as alive without a sign of life.
    pub ttl: Duration,
    /// Directories that each node which names them has.
    pub shared_paths: Vec<String>,
    /// What sessions may require of it.
    pub labels: Labels,
}

/// The owner of a session, for those who pass a request on to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub name: String,
    /// The URL at which it is reached; empty: it cannot be reached.
    pub address: String,
    /// The start of it that owns the session.
    pub incarnation: Incarnation,
    /// Its public key, as text; empty: it runs a version without keys.
    pub key: String,
}

/// A live node with a key of it that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// Its name.
    pub name: String,
    /// Its current incarnation.
    pub incarnation: Incarnation,
    /// The public key, as text.
    pub key: String,
}

impl Away {
    /// How a person lets the session go on.
    #[must_use]
    pub fn ways_out(&self, session: SessionId) -> String {
        if !self.lacking.is_empty() {
            return "start a node with these labels (node.labels)".to_owned();
        }
        format!(
            "start node {} again; or let the session go on in another directory: agentctl resume {} -C DIR",
            self.home,
            session.short()
        )
    }
}

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            here,
            home,
            workdir,
            lacking,
        } = self;
        match (here.as_str(), lacking.is_empty()) {
            ("", true) => write!(f, "works in {workdir} on node {home}, which is not there"),
            ("", false) => write!(f, "requires {}, which no open node has", listed(lacking)),
            (_, true) => write!(f, "works in {workdir} on node {home}, and not on node {here}"),
            (_, false) => write!(f, "requires {}, which node {here} does not have", listed(lacking)),
        }
    }
}

/// What stays the same while no node can take over anything more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Orphans {
    /// The sessions that continue by themselves and have no live owner.
    pub sessions: u64,
    /// Changes with these sessions and with the live nodes.
    pub mark: u64,
}

/// A session that would continue by itself, and that no live node may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// The session.
    pub session: SessionId,
    /// Why.
    pub away: Away,
    /// Since when: its last change.
    pub since: Timestamp,
}

/// The answer to a sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// Which sessions the node may have.
    pub placing: Placing,
    /// How long until the first lease of another node ends, unless that node gives a sign of life.
    pub next_end: Option<Duration>,
}

/// The membership of this node in a fleet.
#[async_trait]
pub trait Fleet: Send + Sync + fmt::Debug {
    /// Joins as a new incarnation, which owns what this node creates or claims from now on.
    async fn join(&self, node: &Joining) -> Result<Incarnation, StoreError>;
    /// Gives a sign of life, and takes note of nodes that gave none in time. Fails with `NodeLost` if others took note
    /// that this node is gone.
    async fn beat(&self, ttl: Duration) -> Result<Beat, StoreError>;
    /// The sessions that continue by themselves and have no live owner. Cheap.
    async fn orphans(&self) -> Result<Orphans, StoreError>;
    /// Those of them that no live node may run.
    async fn stranded(&self) -> Result<Vec<Stranded>, StoreError>;
    /// Takes over this node's share of the orphans that it may run. Returns when each continues.
    async fn adopt(&self) -> Result<Vec<(SessionId, Timestamp)>, StoreError>;
    /// Gives up all sessions but these and their relatives.
    async fn hand_over(&self, keep: &[SessionId]) -> Result<u64, StoreError>;
    /// Ends the membership: others may take over all sessions.
    async fn leave(&self) -> Result<(), StoreError>;
    /// The current incarnation of each node that has sessions or was there lately, by name.
    async fn nodes(&self) -> Result<Vec<FleetNode>, StoreError>;
    /// Says which sessions a node may have. Returns whether there is such a live node.
    async fn place(&self, name: &str, placing: Placing) -> Result<bool, StoreError>;
    /// Says what this node wants of each provider's limit. Returns its shares in the same order: in sum, the live nodes never
    /// have more permits than the limit.
    async fn share(&self, demands: &[Demand]) -> Result<Vec<Share>, StoreError>;
    /// The live node that owns a session or a relative of it, unless it is this one.
    async fn owner(&self, session: SessionId) -> Result<Option<Owner>, StoreError>;
    /// Another live node that may run a session.
    async fn host(&self, session: SessionId) -> Result<Option<Owner>, StoreError>;
    /// Gives up a session whose files are not here. Returns whether it is one.
    async fn give_back(&self, session: SessionId) -> Result<bool, StoreError>;
    /// Reports the load of this node. Returns the least load of the other nodes that take new sessions.
    async fn report_load(&self, load: u32) -> Result<Option<u32>, StoreError>;
    /// Among the other nodes that take new sessions and have these labels, the one with the least load. With a directory and a
    /// load: only one of whose shared paths the directory is below, and that has clearly less load.
    async fn open_node(
        &self,
        requires: &Labels,
        better: Option<(&str, u32)>,
    ) -> Result<Option<Owner>, StoreError>;
    /// Why this node may not run a session; `None`: it may.
    async fn away(&self, session: SessionId) -> Result<Option<Away>, StoreError>;
    /// The keys of the live nodes. A node that replaces its key has two for a while.
    async fn keys(&self) -> Result<Vec<KnownKey>, StoreError>;
    /// Replaces the key of this node. The one before is in force for this much longer, and never again.
    async fn rotate_key(&self, key: &str, grace: Duration) -> Result<(), StoreError>;
    /// Removes the keys of a node for good, and ends its membership: others take over its sessions. It joins again only with
    /// a new key, and after [`Self::admit_key`]. Returns whether it had a key.
    async fn remove_key(&self, name: &str) -> Result<bool, StoreError>;
    /// Lets a node whose key was removed join with a new key. Returns whether there is such a node.
    async fn admit_key(&self, name: &str) -> Result<bool, StoreError>;
}

/// Whether this node may start effects: until shortly before others may take over its sessions. Every part of the node has
/// a copy. Commands that run then are killed by their wardens (`CommandDeadline`); the epochs keep two owners apart (I9).
#[derive(Debug, Clone)]
pub struct Lease(Arc<AtomicU64>);

/// Time is counted from here.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Default for Lease {
    /// One that never ends: the node is alone.
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl Lease {
    /// Ends it at this time; it may have been later or earlier before.
    pub fn until(&self, end: Instant) {
        let ms = end.saturating_duration_since(*START).as_millis();
        self.0
            .store(u64::try_from(ms).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn holds(&self) -> bool {
        let end = self.0.load(Ordering::Acquire);
        end == u64::MAX || START.elapsed().as_millis() < u128::from(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i9_a_lease_ends_unless_it_is_extended() {
        let lease = Lease::default();
        assert!(lease.holds());
        lease.until(Instant::now() + Duration::from_secs(3_600));
        assert!(lease.holds());
        lease.until(*START);
        assert!(!lease.holds());
        lease.until(Instant::now() + Duration::from_secs(3_600));
        assert!(lease.holds());
    }
}
