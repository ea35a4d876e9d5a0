//! The worker that asks a server to count a request's tokens. It needs no permit: counting is free and limited separately.

use agentd_actor_kit::{Handle, ModelMsg, SessionMsg, spawn_worker};
use agentd_provider::{Counted, ModelSpec, RequestBody, count_tokens};
use agentd_turn::{Answer, QuestionId};
use ractor::{ActorCell, ActorRef, SpawnErr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long the model client may take to say whether the server counts.
const CLIENT_WITHIN: Duration = Duration::from_secs(1);

/// The arguments of a count.
#[derive(Debug)]
pub struct CountStart {
    /// The session that receives the answer.
    pub to: ActorRef<SessionMsg>,
    /// Returned with the answer.
    pub id: QuestionId,
    /// The model whose server counts.
    pub spec: Arc<ModelSpec>,
    /// The model client, which remembers the servers that count.
    pub client: Handle<ModelMsg>,
    /// The HTTP client of the process.
    pub http: reqwest::Client,
    /// The request.
    pub body: RequestBody,
    /// The credential to use.
    pub credential: Option<String>,
    /// The time limit.
    pub within: Duration,
}

/// Asks a server to count a request's tokens and ends. The answer is its last message.
#[derive(Debug)]
pub struct TokenCount;

impl TokenCount {
    /// Starts a count, linked to `supervisor`.
    ///
    /// # Errors
    /// When the supervisor is stopping.
    pub async fn start(start: CountStart, supervisor: ActorCell) -> Result<ActorCell, SpawnErr> {
        spawn_worker(run(start), supervisor).await
    }
}

async fn run(start: CountStart) {
    let (id, to, within) = (start.id, start.to.clone(), start.within);
    let model = start.spec.model.clone();
    let tokens = timeout(within, count(start)).await.ok().flatten();
    let unknown = || Answer::Nobody("its server did not count".to_owned());
    let answer = tokens.map_or_else(unknown, |tokens| Answer::TokenCount { model, tokens });
    let _ = to.cast(SessionMsg::Answered {
        id,
        answer: Box::new(answer),
    });
}

async fn count(start: CountStart) -> Option<u64> {
    let model = start.spec.model.clone();
    let asked = start.client.call(CLIENT_WITHIN, |done| ModelMsg::MayCount {
        model: model.clone(),
        done,
    });
    if !asked.await.unwrap_or(false) {
        return None;
    }
    let credential = start.spec.credential(start.credential.as_deref());
    // A little less than the worker's own limit, so that a server that hangs is remembered.
    let within = start.within * 9 / 10;
    let counted = count_tokens(&start.http, &start.spec, credential, &start.body, within).await;
    start.client.cast(ModelMsg::Counted { model, counted });
    match counted {
        Counted::Tokens(tokens) => Some(tokens),
        Counted::Never | Counted::Failed => None,
    }
}
