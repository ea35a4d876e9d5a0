//! The kid that makes one attempt of a model call.

use crate::attempt::{self, Caller};
use agentd_actor_kit::{Handle, ModelMsg, SessionMsg};
use agentd_protocol::{CallId, Message, SessionId};
use agentd_provider::{ModelSpec, RequestBody};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use std::sync::Arc;

/// What an attempt is started with.
#[derive(Debug)]
pub struct CallStart {
    /// Who gets the news.
    pub to: ActorRef<SessionMsg>,
    /// Whose.
    pub session: SessionId,
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
    /// The conversation, for a model that is a script.
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
    let (kid, _) = Actor::spawn_linked(None, Kid(caller), start, supervisor).await?;
    Ok(kid.get_cell())
}

/// The actor: all its work is done as it starts, where a kill interrupts it and a panic is told to its supervisor.
struct Kid<C>(C);

impl<C: Caller> Actor for Kid<C> {
    type Msg = ();
    type State = Option<CallStart>;
    type Arguments = CallStart;

    async fn pre_start(&self, _: ActorRef<()>, start: CallStart) -> Result<Self::State, ActorProcessingErr> {
        Ok(Some(start))
    }

    async fn post_start(
        &self,
        myself: ActorRef<()>,
        start: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(start) = start.take() {
            Box::pin(attempt::run(&self.0, start)).await;
        }
        myself.stop(None);
        Ok(())
    }
}
