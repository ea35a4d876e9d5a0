//! The key of this node and those of the others: what it signs, and whose requests it accepts.

use crate::error::NodeError;
use agentd_actor_kit::Clock;
use agentd_node_keys::{
    Arrived, Expected, Here, Identity, Keys, NodeKey, Outgoing, Proof, PublicKey, Refusal, Signed, Verifier,
    Vouched, read_or_create, replace,
};
use agentd_protocol::Fault;
use agentd_settings::FleetConfig;
use agentd_store::{Fleet, Owner, Standing, StoreError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

/// How old the known keys may be. A key that another node removed is accepted until then.
const FRESH: Duration = Duration::from_secs(1);
/// How old they may be before a key counts as unknown; strangers cause no more reads than this allows.
const UNKNOWN: Duration = Duration::from_millis(50);
/// How long the key before is in force: requests with it are on their way.
const GRACE: Duration = Duration::from_secs(60);

/// The key pair of this node, as its file has it.
#[derive(Debug)]
pub(crate) struct OwnKey {
    data_dir: PathBuf,
    current: RwLock<Arc<NodeKey>>,
    /// Held while it is replaced.
    replacing: Mutex<()>,
}

impl OwnKey {
    /// Reads the key of the node with this data directory. The first start makes it.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, NodeError> {
        let key = read_or_create(data_dir)?;
        agentd_text::register_secret(&key.expose());
        Ok(Self {
            data_dir: data_dir.to_owned(),
            current: RwLock::new(Arc::new(key)),
            replacing: Mutex::default(),
        })
    }

    pub(crate) fn current(&self) -> Arc<NodeKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces it, first in its file: after a crash the node joins with the new key, whether the database has it yet or not.
    async fn rotate(&self, fleet: &dyn Fleet) -> Result<PublicKey, Fault> {
        let _alone = self.replacing.lock().await;
        let failed = |why: String| Fault::storage("key_not_replaced", why).hint("try again");
        let key = NodeKey::random().ok_or_else(|| failed("the system has no random numbers".to_owned()))?;
        agentd_text::register_secret(&key.expose());
        replace(&self.data_dir, &key).map_err(|error| failed(error.to_string()))?;
        let public = key.public();
        fleet.rotate_key(&public.to_string(), GRACE).await?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
        Ok(public)
    }
}

/// The keys of the live nodes, as they were read last.
#[derive(Debug)]
struct Known {
    fleet: Arc<dyn Fleet>,
    last: RwLock<Option<(Instant, Arc<Keys>)>>,
    /// Held while they are read.
    reading: Mutex<()>,
}

impl Known {
    fn last(&self, age: Duration) -> Option<Arc<Keys>> {
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        let (at, keys) = last.as_ref()?;
        (at.elapsed() <= age).then(|| Arc::clone(keys))
    }

    /// The keys, at most this old. If they cannot be read, there are none (I7).
    async fn keys(&self, age: Duration) -> Result<Arc<Keys>, StoreError> {
        if let Some(keys) = self.last(age) {
            return Ok(keys);
        }
        let _alone = self.reading.lock().await;
        if let Some(keys) = self.last(age) {
            return Ok(keys);
        }
        let at = Instant::now();
        let known = self.fleet.keys().await?.into_iter();
        let keys = known.filter_map(|known| {
            let node = Identity {
                name: known.name,
                incarnation: known.incarnation.0,
            };
            Some((node, PublicKey::parse(&known.key)?))
        });
        let keys: Arc<Keys> = Arc::new(keys.collect());
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some((at, Arc::clone(&keys)));
        Ok(keys)
    }

    fn forget(&self) {
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Signs requests to other nodes, and verifies theirs.
#[derive(Debug)]
pub(crate) struct Signing {
    name: String,
    own: Arc<OwnKey>,
    known: Known,
    standing: watch::Receiver<Standing>,
    verifier: Verifier,
    config: FleetConfig,
    clock: Clock,
}

impl Signing {
    pub(crate) fn new(
        name: &str,
        own: &Arc<OwnKey>,
        fleet: &Arc<dyn Fleet>,
        standing: &watch::Receiver<Standing>,
        config: &FleetConfig,
    ) -> Self {
        Self {
            name: name.to_owned(),
            own: Arc::clone(own),
            known: Known {
                fleet: Arc::clone(fleet),
                last: RwLock::default(),
                reading: Mutex::default(),
            },
            standing: standing.clone(),
            verifier: Verifier::default(),
            config: config.clone(),
            clock: Clock::System,
        }
    }

    pub(crate) fn key(&self) -> Arc<NodeKey> {
        self.own.current()
    }

    fn me(&self) -> Identity {
        Identity {
            name: self.name.clone(),
            incarnation: self.standing.borrow().incarnation.0,
        }
    }

    /// Signs a request to another node.
    pub(crate) fn sign(&self, to: &Owner, path: &str, body: &[u8], by: Proof) -> Result<Signed, Fault> {
        if to.key.is_empty() {
            let message = format!("node {} runs an older version, which signs no requests", to.name);
            return Err(Fault::version("node_older", message).hint("upgrade that node"));
        }
        let outgoing = Outgoing {
            method: "POST",
            path,
            body,
            to: Identity {
                name: to.name.clone(),
                incarnation: to.incarnation.0,
            },
            from: self.me(),
            at: self.clock.now(),
            by,
        };
        let signed = outgoing.sign(&self.own.current());
        signed.ok_or_else(|| Fault::internal("no_entropy", "the system has no random numbers"))
    }

    /// Verifies the head of a request.
    pub(crate) async fn vouch(&self, arrived: &Arrived<'_>) -> Result<Vouched, Fault> {
        let here = Here {
            node: self.me(),
            now: self.clock.now(),
            window_ms: u64::try_from(self.config.clock_window.as_millis()).unwrap_or(u64::MAX),
            most: self.config.remembered_requests as usize,
        };
        let keys = self.known.keys(FRESH).await?;
        let vouched = match self.verifier.vouch(arrived, &here, &keys) {
            // The node may have joined, or replaced its key, just now.
            Err(Refusal::UnknownKey(_)) => {
                let keys = self.newest().await?;
                self.verifier.vouch(arrived, &here, &keys)
            }
            vouched => vouched,
        };
        Ok(vouched?)
    }

    /// The keys as the database has them now, or had them a moment ago.
    async fn newest(&self) -> Result<Arc<Keys>, StoreError> {
        if self.known.last(UNKNOWN).is_some() {
            sleep(UNKNOWN).await;
        }
        self.known.keys(UNKNOWN).await
    }

    /// Whether an answer is that of the node to which the request was sent.
    pub(crate) async fn is_answer(&self, of: &Owner, expected: &Expected, proof: &str, body: &[u8]) -> bool {
        let Ok(signer) = expected.signer(proof, body) else {
            return false;
        };
        if PublicKey::parse(&of.key) == Some(signer) {
            return true;
        }
        // It may have replaced its key meanwhile.
        let node = Identity {
            name: of.name.clone(),
            incarnation: of.incarnation.0,
        };
        self.newest().await.is_ok_and(|keys| keys.hold(&node, signer))
    }

    pub(crate) async fn rotate(&self) -> Result<PublicKey, Fault> {
        self.own.rotate(self.known.fleet.as_ref()).await
    }

    pub(crate) async fn remove(&self, name: &str) -> Result<bool, Fault> {
        let removed = self.known.fleet.remove_key(name).await;
        self.known.forget();
        Ok(removed?)
    }

    pub(crate) async fn admit(&self, name: &str) -> Result<bool, Fault> {
        Ok(self.known.fleet.admit_key(name).await?)
    }
}
