//! Relays: the live fragments of sessions of other nodes, once for all viewers of this node. When a relay breaks, viewers
//! still get every event from the store.

use crate::signing::Signing;
use agentd_actor_kit::{FeedMsg, Handle};
use agentd_api::{PeerFollow, Relay};
use agentd_node_keys::Proof;
use agentd_protocol::{Delta, SessionId};
use agentd_store::{Fleet, Owner};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How often to look whether the session has moved.
const EVERY: Duration = Duration::from_secs(2);
/// The other node sends something at least every 5 s.
const SILENCE: Duration = Duration::from_secs(15);
/// Where other nodes follow a session.
const FOLLOW: &str = "/v1/node/follow";
/// The longest line.
const LONGEST: usize = 1 << 20;

/// A running relay. It ends when its last viewer is gone.
#[derive(Debug)]
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The relays of a node, by session and by whether they only report that a viewer may decide.
#[derive(Debug)]
pub(crate) struct Relays {
    fleet: Arc<dyn Fleet>,
    http: reqwest::Client,
    signing: Arc<Signing>,
    feed: Handle<FeedMsg>,
    running: Mutex<BTreeMap<(SessionId, bool), Weak<Running>>>,
}

impl Relays {
    pub(crate) const fn new(
        fleet: Arc<dyn Fleet>,
        http: reqwest::Client,
        signing: Arc<Signing>,
        feed: Handle<FeedMsg>,
    ) -> Self {
        Self {
            fleet,
            http,
            signing,
            feed,
            running: Mutex::new(BTreeMap::new()),
        }
    }

    /// Starts a relay, or shares a running one.
    pub(crate) fn open(&self, follow: PeerFollow) -> Relay {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, relay| relay.strong_count() > 0);
        let key = (follow.session, follow.decides);
        if let Some(shared) = running.get(&key).and_then(Weak::upgrade) {
            return shared;
        }
        let (fleet, http, feed) = (Arc::clone(&self.fleet), self.http.clone(), self.feed.clone());
        let signing = Arc::clone(&self.signing);
        let relay = Arc::new(Running(tokio::spawn(async move {
            run(fleet.as_ref(), (&http, &signing), &feed, follow).await;
        })));
        running.insert(key, Arc::downgrade(&relay));
        relay
    }
}

async fn run(
    fleet: &dyn Fleet,
    line: (&reqwest::Client, &Signing),
    feed: &Handle<FeedMsg>,
    follow: PeerFollow,
) {
    loop {
        if let Ok(Some(owner)) = fleet.owner(follow.session).await
            && !owner.address.is_empty()
        {
            if let Err(error) = stream(line, feed, &owner, follow).await {
                tracing::debug!(node = owner.name, %error, "a relay of live fragments ended");
            }
            if follow.deltas {
                // What it streamed is stale.
                feed.cast(FeedMsg::Cold {
                    session: follow.session,
                });
            }
        }
        sleep(EVERY).await;
    }
}

/// Passes fragments on until the stream ends.
async fn stream(
    (http, signing): (&reqwest::Client, &Signing),
    feed: &Handle<FeedMsg>,
    owner: &Owner,
    follow: PeerFollow,
) -> Result<(), String> {
    let url = format!("{}{FOLLOW}", owner.address.trim_end_matches('/'));
    let body = serde_json::to_vec(&follow).map_err(|error| error.to_string())?;
    let signed = signing.sign(owner, FOLLOW, &body, Proof::Node);
    let signed = signed.map_err(|fault| fault.to_string())?;
    let request = http
        .post(url)
        .header(AUTHORIZATION, signed.authorization)
        .header(CONTENT_TYPE, "application/json")
        .body(body)
        .send();
    let answer = timeout(SILENCE, request).await;
    let answer = answer.map_err(|_| "no answer in time".to_owned())?;
    let mut answer = answer
        .and_then(reqwest::Response::error_for_status)
        .map_err(|error| error.without_url().to_string())?;
    let mut line = Vec::new();
    loop {
        let chunk = timeout(SILENCE, answer.chunk()).await;
        let chunk = chunk.map_err(|_| "it went silent".to_owned())?;
        let Some(chunk) = chunk.map_err(|error| error.without_url().to_string())? else {
            return Ok(());
        };
        for byte in chunk {
            if byte != b'\n' {
                line.push(byte);
                continue;
            }
            if let Ok(delta) = serde_json::from_slice::<Delta>(&line) {
                let session = follow.session;
                feed.cast(FeedMsg::Delta { session, delta });
            }
            line.clear();
        }
        if line.len() > LONGEST {
            return Err("a line is too long".to_owned());
        }
    }
}
