//! The kid that runs one tool call.

use crate::run::{self, Runner};
use agentd_actor_kit::{GateMsg, Handle, JudgeRequest, SessionMsg, StoreMsg, ToolMsg, spawn_kid};
use agentd_protocol::{Binding, SessionId, ToolCallId};
use agentd_tools::{FilesSeen, Jobs, Prepared, Remote};
use ractor::{ActorCell, ActorRef, SpawnErr};
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
    /// The session's background jobs.
    pub jobs: Jobs,
    /// Who admits it.
    pub executor: Handle<ToolMsg>,
    /// Who keeps output that is too long for the log.
    pub store: Handle<StoreMsg>,
    /// Who runs the tools of servers, if there are any.
    pub remote: Option<Arc<dyn Remote>>,
    /// What it may do.
    pub mandate: Mandate,
}

/// What a call may do beyond what its plan says.
#[derive(Debug, Default)]
pub struct Mandate {
    /// What a person approved: the call runs only if this is still so.
    pub bound: Option<Binding>,
    /// Whether somebody who may answer questions approved it.
    pub approved: bool,
    /// Who judges what turns up while the call runs, addresses to which a server sends it on and files that a search
    /// finds, with a request that only lacks these. Nobody: none is followed or shown.
    pub judges: Option<(Handle<GateMsg>, Box<JudgeRequest>)>,
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
    let work = async move { run::run(&runner, start).await };
    spawn_kid(work, supervisor).await
}
