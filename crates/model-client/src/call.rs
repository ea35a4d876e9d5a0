//! The kid that makes one attempt of a model call.

use crate::attempt::{self, Caller};
use agentd_actor_kit::{Ask, Handle, ModelMsg, SessionMsg, spawn_kid};
use agentd_protocol::{CallId, Message};
use agentd_provider::{ModelSpec, RequestBody};
use ractor::{ActorCell, ActorRef, SpawnErr};
use std::sync::Arc;

/// What an attempt is started with.
#[derive(Debug)]
pub struct CallStart {
    /// Who gets the news.
    pub to: ActorRef<SessionMsg>,
    /// What it asks of its provider.
    pub ask: Ask,
    /// The call.
    pub call: CallId,
    /// The attempt.
    pub attempt: u32,
    /// Whom to ask.
    pub spec: Arc<ModelSpec>,
    /// Who admits it.
    pub client: Handle<ModelMsg>,
    /// The HTTP client of the process.
    pub http: reqwest::Client,
    /// What is sent.
    pub body: RequestBody,
    /// The names of the tools that are offered.
    pub tools: Vec<String>,
    /// The conversation, for a model that is a script or is recorded.
    pub messages: Vec<Arc<Message>>,
}

/// Makes one attempt of a model call and ends. Killing it drops the connection and gives the permit back.
#[derive(Debug)]
pub struct ModelCall;

impl ModelCall {
    /// Starts an attempt, linked to `supervisor`.
    ///
    /// # Errors
    /// When the supervisor is going down.
    pub async fn start(start: CallStart, supervisor: ActorCell) -> Result<ActorCell, SpawnErr> {
        let caller = attempt::Http(start.http.clone());
        spawn(caller, start, supervisor).await
    }
}

pub(crate) async fn spawn<C: Caller>(
    caller: C,
    start: CallStart,
    supervisor: ActorCell,
) -> Result<ActorCell, SpawnErr> {
    let work = async move { attempt::run(&caller, start).await };
    spawn_kid(work, supervisor).await
}
