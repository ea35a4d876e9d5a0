//! The other nodes of the fleet, over their HTTP APIs.

use crate::relay::Relays;
use crate::signing::Signing;
use agentd_actor_kit::{FeedMsg, Handle};
use agentd_api::{NODE_GONE, PeerCall, PeerFollow, Peers, Relay, Statuses};
use agentd_node_keys::{Arrived, Expected, Proof, PublicKey, Verified, Vouched, sign_answer};
use agentd_protocol::{Fault, FleetNode, Labels, Placing, SessionId};
use agentd_store::{Away, Fleet, Owner, Standing, StoreError};
use async_trait::async_trait;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long a request may take on the other node; longer than any deadline that it has itself.
const ANSWER: Duration = Duration::from_secs(130);
/// Where other nodes call.
const CALL: &str = "/v1/node/call";
/// The header that proves an answer.
const ANSWER_HEADER: &str = "agentd-node-answer";
/// The most characters of what a refusal says.
const LONGEST: usize = 300;

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
    signing: Arc<Signing>,
    relays: Relays,
    news: News,
}

impl HttpPeers {
    pub(crate) fn new(
        fleet: Arc<dyn Fleet>,
        http: reqwest::Client,
        feed: Handle<FeedMsg>,
        signing: &Arc<Signing>,
        news: News,
    ) -> Self {
        Self {
            relays: Relays::new(Arc::clone(&fleet), http.clone(), Arc::clone(signing), feed),
            fleet,
            http,
            signing: Arc::clone(signing),
            news,
        }
    }

    /// The answer to a request that the other node ran.
    async fn answered(
        &self,
        owner: &Owner,
        expected: &Expected,
        answer: reqwest::Response,
    ) -> Result<Value, Fault> {
        let unreachable = |why: String| unreachable(&owner.name, &why);
        let proof = answer.headers().get(ANSWER_HEADER);
        let proof = proof.and_then(|proof| proof.to_str().ok()).unwrap_or_default();
        let proof = proof.to_owned();
        let body = answer.bytes().await;
        let body = body.map_err(|error| unreachable(error.without_url().to_string()))?;
        if !self.signing.is_answer(owner, expected, &proof, &body).await {
            return Err(unreachable("its answer is not signed with its key".to_owned()));
        }
        let bad = |_| unreachable("its answer is unreadable".to_owned());
        let mut answer: Value = serde_json::from_slice(&body).map_err(bad)?;
        if let Some(fault) = answer.get_mut("fault").map(Value::take) {
            return Err(serde_json::from_value(fault).map_err(bad)?);
        }
        Ok(answer.get_mut("ok").map(Value::take).unwrap_or_default())
    }
}

fn unreachable(name: &str, why: &str) -> Fault {
    Fault::unavailable("node_unreachable", format!("node {name} does not answer: {why}"))
        .hint("try again with the same key: if the node is gone, another one takes over within node.ttl")
}

/// The fault of a request that has not run, and that may run when the session has moved.
fn gone(fault: Fault) -> Fault {
    Fault {
        code: NODE_GONE.to_owned(),
        ..fault
    }
}

/// What an answer means that says that the request was not run. It is not signed, so it is believed only in that.
async fn refused(name: &str, answer: reqwest::Response) -> Fault {
    let status = answer.status();
    let problem = answer.json::<Value>().await.unwrap_or_default();
    let word = |key: &str| {
        let word = problem.get(key).and_then(Value::as_str).unwrap_or_default();
        word.chars().take(LONGEST).collect::<String>()
    };
    let said = |code: &str| {
        let message = format!("node {name} refuses the request of this node: {}", word("detail"));
        let fault = Fault::unavailable(code, message);
        match word("hint") {
            hint if hint.is_empty() => fault,
            hint => fault.hint(hint),
        }
    };
    match (status, word("code").as_str()) {
        // Its next start, or this node as it was before it joined again.
        (StatusCode::UNAUTHORIZED, "wrong_node" | "unknown_node_key") => gone(said("")),
        (
            StatusCode::UNAUTHORIZED,
            code @ ("clock_skew" | "bad_node_signature" | "replayed" | "bad_node_request"),
        ) => said(code),
        // Another process has the address of a node that is gone: this server, or one without such a page.
        (StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND, _) => {
            gone(unreachable(name, "another process has its address"))
        }
        (StatusCode::FORBIDDEN, _) => unreachable(
            name,
            "it does not accept the certificate of this node; set http.tls.nodes to the same roots on all nodes",
        ),
        (status, _) => unreachable(name, &format!("it answers {status}")),
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

    async fn call(&self, owner: &Owner, by: Proof, call: &PeerCall) -> Result<Value, Fault> {
        let name = &owner.name;
        if owner.address.is_empty() {
            let message = format!("the session runs on node {name}, which other nodes cannot reach");
            let hint = format!("use node {name}, or set http.listen and node.address there");
            return Err(Fault::unavailable("node_unreachable", message).hint(hint));
        }
        let body = serde_json::to_vec(call)
            .map_err(|error| Fault::internal("bad_request", format!("cannot encode the request: {error}")))?;
        let signed = self.signing.sign(owner, CALL, &body, by)?;
        let expected = Expected::from(&signed);
        let url = format!("{}{CALL}", owner.address.trim_end_matches('/'));
        let request = self
            .http
            .post(url)
            .header(AUTHORIZATION, signed.authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let answer = request.timeout(ANSWER).send().await.map_err(|error| {
            let sent = !error.is_connect();
            let fault = unreachable(name, &error.without_url().to_string());
            if sent { fault } else { gone(fault) }
        })?;
        if answer.status() != StatusCode::OK {
            return Err(refused(name, answer).await);
        }
        self.answered(owner, &expected, answer).await
    }

    async fn nodes(&self) -> Result<Vec<FleetNode>, StoreError> {
        self.fleet.nodes().await
    }

    async fn place(&self, name: &str, placing: Placing) -> Result<bool, StoreError> {
        self.fleet.place(name, placing).await
    }

    async fn vouch(&self, arrived: &Arrived<'_>) -> Result<Vouched, Fault> {
        self.signing.vouch(arrived).await
    }

    fn prove_answer(&self, request: &Verified, body: &[u8]) -> String {
        sign_answer(&self.signing.key(), request, body)
    }

    async fn rotate_key(&self) -> Result<PublicKey, Fault> {
        self.signing.rotate().await
    }

    async fn remove_key(&self, name: &str) -> Result<bool, Fault> {
        self.signing.remove(name).await
    }

    async fn admit_key(&self, name: &str) -> Result<bool, Fault> {
        self.signing.admit(name).await
    }

    fn relay(&self, follow: PeerFollow) -> Relay {
        self.relays.open(follow)
    }
}
