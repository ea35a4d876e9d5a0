//! The worker that runs one tool call.

use crate::run::{self, Runner};
use agentd_actor_kit::{GateMsg, Handle, JudgeRequest, SessionMsg, StoreMsg, ToolMsg, spawn_worker};
use agentd_protocol::{Binding, SessionId, ToolCallId};
use agentd_tools::{FilesSeen, Jobs, Prepared, Remote};
use ractor::{ActorCell, ActorRef, SpawnErr};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The arguments of a run.
#[derive(Debug)]
pub struct ToolStart {
    /// Receives its events.
    pub to: ActorRef<SessionMsg>,
    /// The owning session.
    pub session: SessionId,
    /// The call.
    pub tool_call: ToolCallId,
    /// The number of this run of the call.
    pub attempt: u32,
    /// The checked call.
    pub prepared: Prepared,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// The files that the session knows.
    pub seen: Arc<FilesSeen>,
    /// The session's background jobs.
    pub jobs: Jobs,
    /// Admits the call.
    pub executor: Handle<ToolMsg>,
    /// Stores output that is too long for the log.
    pub store: Handle<StoreMsg>,
    /// Runs the tools of tool servers, if there are any.
    pub remote: Option<Arc<dyn Remote>>,
    /// Its permissions.
    pub mandate: Mandate,
}

/// The rights of a call beyond its plan.
#[derive(Debug, Default)]
pub struct Mandate {
    /// The approved binding: the call runs only if this still holds.
    pub bound: Option<Binding>,
    /// The files that the call runs, as they were judged: the call runs only if they are still the same. `None`: what
    /// allowed it does not depend on them.
    pub contents: Option<BTreeMap<String, String>>,
    /// Whether a person with the right to answer questions approved it.
    pub approved: bool,
    /// The gate for addresses of redirects and files that a search finds, with a request that lacks only these. `None`:
    /// no redirect is followed and no file shown.
    pub judges: Option<(Handle<GateMsg>, Box<JudgeRequest>)>,
}

/// Runs one tool call and ends. Killing it kills the command and returns the permit.
#[derive(Debug)]
pub struct ToolCall;

impl ToolCall {
    /// Starts a run, linked to `supervisor`.
    ///
    /// # Errors
    /// The supervisor is shutting down.
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
    spawn_worker(work, supervisor).await
}
