//! The other nodes of the fleet, over their HTTP APIs.

use crate::relay::Relays;
use agentd_actor_kit::{FeedMsg, Handle};
use agentd_api::{NODE_GONE, PeerCall, PeerFollow, Peers, Relay, Statuses};
use agentd_protocol::{Fault, FleetNode, Labels, Placing, SessionId};
use agentd_store::{Away, Fleet, Owner, Standing, StoreError};
use async_trait::async_trait;
use reqwest::StatusCode;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long a request may take on the other node; longer than any deadline that it has itself.
const ANSWER: Duration = Duration::from_secs(130);

/// What the membership reports.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) standing: watch::Receiver<Standing>,
    pub(crate) stranded: watch::Receiver<Arc<Statuses>>,
    pub(crate) busier: watch::Receiver<Option<u32>>,
}

/// The nodes that share the store.
#[derive(Debug)]
pub(crate) struct HttpPeers {
    fleet: Arc<dyn Fleet>,
    http: reqwest::Client,
    relays: Relays,
    news: News,
    /// The hash of this node's secret: comparing hashes takes the same time for every input.
    secret: [u8; 32],
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

impl HttpPeers {
    pub(crate) fn new(
        fleet: Arc<dyn Fleet>,
        http: reqwest::Client,
        feed: Handle<FeedMsg>,
        secret: &str,
        news: News,
    ) -> Self {
        Self {
            relays: Relays::new(Arc::clone(&fleet), http.clone(), feed),
            fleet,
            http,
            news,
            secret: hash(secret),
        }
    }
}

#[async_trait]
impl Peers for HttpPeers {
    async fn owner(&self, session: SessionId) -> Result<Option<Owner>, StoreError> {
        self.fleet.owner(session).await
    }

    fn placing(&self) -> Placing {
        self.news.standing.borrow().placing
    }

    fn stranded(&self) -> Arc<Statuses> {
        Arc::clone(&self.news.stranded.borrow())
    }

    async fn host(&self, session: SessionId) -> Result<Option<Owner>, StoreError> {
        self.fleet.host(session).await
    }

    async fn give_back(&self, session: SessionId) -> Result<bool, StoreError> {
        self.fleet.give_back(session).await
    }

    fn busier(&self) -> Option<u32> {
        *self.news.busier.borrow()
    }

    async fn away(&self, session: SessionId) -> Result<Option<Away>, StoreError> {
        self.fleet.away(session).await
    }

    async fn open_node(
        &self,
        requires: &Labels,
        better: Option<(&str, u32)>,
    ) -> Result<Option<Owner>, StoreError> {
        self.fleet.open_node(requires, better).await
    }

    async fn call(&self, owner: &Owner, call: &PeerCall) -> Result<Value, Fault> {
        let name = &owner.name;
        if owner.address.is_empty() {
            let message = format!("the session runs on node {name}, which other nodes cannot reach");
            let hint = format!("use node {name}, or set http.listen and node.address there");
            return Err(Fault::unavailable("node_unreachable", message).hint(hint));
        }
        let unreachable = |why: String| {
            let message = format!("node {name} does not answer: {why}");
            Fault::unavailable("node_unreachable", message).hint(
                "try again with the same key: if the node is gone, another one takes over within node.ttl",
            )
        };
        let url = format!("{}/v1/node/call", owner.address.trim_end_matches('/'));
        let request = self.http.post(url).bearer_auth(&owner.secret).json(call);
        let gone = |why: String| Fault {
            code: NODE_GONE.to_owned(),
            ..unreachable(why)
        };
        let sent = request.timeout(ANSWER).send().await;
        let answer = sent.map_err(|error| {
            let sent = !error.is_connect();
            let why = error.without_url().to_string();
            if sent { unreachable(why) } else { gone(why) }
        })?;
        match answer.status() {
            StatusCode::OK => {}
            // Another process has the address of a node that is gone: this server, or one without such a page.
            StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND => {
                return Err(gone("another process has its address".to_owned()));
            }
            StatusCode::FORBIDDEN => {
                let why = "it does not accept the certificate of this node; set http.tls.nodes to the same roots on all nodes";
                return Err(unreachable(why.to_owned()));
            }
            status => return Err(unreachable(format!("it answers {status}"))),
        }
        let answer = answer.json::<Value>().await;
        let mut answer = answer.map_err(|error| unreachable(error.without_url().to_string()))?;
        if let Some(fault) = answer.get_mut("fault").map(Value::take) {
            let bad = |_| unreachable("its answer is unreadable".to_owned());
            return Err(serde_json::from_value(fault).map_err(bad)?);
        }
        Ok(answer.get_mut("ok").map(Value::take).unwrap_or_default())
    }

    async fn nodes(&self) -> Result<Vec<FleetNode>, StoreError> {
        self.fleet.nodes().await
    }

    async fn place(&self, name: &str, placing: Placing) -> Result<bool, StoreError> {
        self.fleet.place(name, placing).await
    }

    fn admits(&self, secret: &str) -> bool {
        hash(secret) == self.secret
    }

    fn relay(&self, follow: PeerFollow) -> Relay {
        self.relays.open(follow)
    }
}
