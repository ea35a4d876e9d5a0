//! The worker that makes one attempt of a model call.

use crate::attempt::{self, Caller};
use agentd_actor_kit::{Ask, Handle, ModelMsg, SessionMsg, spawn_worker};
use agentd_protocol::{CallId, Message};
use agentd_provider::{ModelSpec, RequestBody};
use ractor::{ActorCell, ActorRef, SpawnErr};
use std::sync::Arc;

/// The arguments of an attempt.
#[derive(Debug)]
pub struct CallStart {
    /// The session that receives the events.
    pub to: ActorRef<SessionMsg>,
    /// The request for admission.
    pub ask: Ask,
    /// The call.
    pub call: CallId,
    /// The number of the attempt.
    pub attempt: u32,
    /// The model to call.
    pub spec: Arc<ModelSpec>,
    /// The model client that admits it.
    pub client: Handle<ModelMsg>,
    /// The HTTP client of the process.
    pub http: reqwest::Client,
    /// The request body.
    pub body: RequestBody,
    /// The names of the offered tools.
    pub tools: Vec<String>,
    /// The conversation, for a model that is scripted or recorded.
    pub messages: Vec<Arc<Message>>,
}

/// Makes one attempt of a model call and ends. Killing it drops the connection and releases the permit.
#[derive(Debug)]
pub struct ModelCall;

impl ModelCall {
    /// Starts an attempt, linked to `supervisor`.
    ///
    /// # Errors
    /// When the supervisor is stopping.
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
    spawn_worker(work, supervisor).await
}
