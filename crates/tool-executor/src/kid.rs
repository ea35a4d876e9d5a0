//! The kid that runs one tool call.

use crate::run::{self, Runner};
use agentd_actor_kit::{Handle, SessionMsg, StoreMsg, ToolMsg};
use agentd_protocol::{SessionId, ToolCallId};
use agentd_tools::{FilesSeen, Prepared};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use std::path::PathBuf;
use std::sync::Arc;

/// What a run is started with.
#[derive(Debug)]
pub struct ToolStart {
    /// Who gets the news.
    pub to: ActorRef<SessionMsg>,
    /// Whose.
    pub session: SessionId,
    /// The call.
    pub tool_call: ToolCallId,
    /// Which run of it.
    pub attempt: u32,
    /// What.
    pub prepared: Prepared,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// The files that the session knows.
    pub seen: Arc<FilesSeen>,
    /// Who admits it.
    pub executor: Handle<ToolMsg>,
    /// Who keeps output that is too long for the log.
    pub store: Handle<StoreMsg>,
}

/// Runs one tool call and ends. Killing it kills the command and gives the permit back.
#[derive(Debug)]
pub struct ToolCall;

impl ToolCall {
    /// Starts a run, linked to `supervisor`.
    ///
    /// # Errors
    /// When the supervisor is going down.
    pub async fn start(start: ToolStart, supervisor: ActorCell) -> Result<ActorCell, SpawnErr> {
        spawn(run::Tools, start, supervisor).await
    }
}

pub(crate) async fn spawn<R: Runner>(
    runner: R,
    start: ToolStart,
    supervisor: ActorCell,
) -> Result<ActorCell, SpawnErr> {
    let (kid, _) = Actor::spawn_linked(None, Kid(runner), start, supervisor).await?;
    Ok(kid.get_cell())
}

/// The actor: all its work is done as it starts, where a kill interrupts it and a panic is told to its supervisor.
struct Kid<R>(R);

impl<R: Runner> Actor for Kid<R> {
    type Msg = ();
    type State = Option<ToolStart>;
    type Arguments = ToolStart;

    async fn pre_start(&self, _: ActorRef<()>, start: ToolStart) -> Result<Self::State, ActorProcessingErr> {
        Ok(Some(start))
    }

    async fn post_start(
        &self,
        myself: ActorRef<()>,
        start: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(start) = start.take() {
            Box::pin(run::run(&self.0, start)).await;
        }
        myself.stop(None);
        Ok(())
    }
}
