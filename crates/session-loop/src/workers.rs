//! Who starts the kids of a loop.

use crate::rework;
use agentd_actor_kit::{Ask, Handle, ModelMsg, SessionMsg, StoreMsg, ToolMsg, spawn_kid};
use agentd_protocol::{CallId, Message, SessionId, ToolCallId};
use agentd_provider::{ModelSpec, RequestBody};
use agentd_tool_executor::Mandate;
use agentd_tools::{FilesSeen, Jobs, Prepared};
use agentd_turn::OpenHistory;
use async_trait::async_trait;
use ractor::{ActorCell, ActorRef, SpawnErr};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One attempt of a model call.
#[derive(Debug)]
pub struct ModelJob {
    /// Who gets the news; also the kid's supervisor.
    pub to: ActorRef<SessionMsg>,
    /// The call.
    pub call: CallId,
    /// The attempt.
    pub attempt: u32,
    /// Whom to ask.
    pub spec: Arc<ModelSpec>,
    /// Who admits it.
    pub client: Handle<ModelMsg>,
    /// What it asks.
    pub ask: Ask,
    /// The names of the tools, where calls are looked for in the text.
    pub tools: Vec<String>,
    /// What is sent.
    pub body: RequestBody,
    /// The conversation, for a model that is a script or is recorded; empty for all others.
    pub messages: Vec<Arc<Message>>,
}

/// The next request is counted.
#[derive(Debug)]
pub struct CountJob {
    /// Who gets the answer; also the kid's supervisor.
    pub to: ActorRef<SessionMsg>,
    /// Handed back with the answer.
    pub call: CallId,
    /// Whom to ask.
    pub spec: Arc<ModelSpec>,
    /// Who remembers which servers count.
    pub client: Handle<ModelMsg>,
    /// The request.
    pub body: RequestBody,
    /// The credential to use.
    pub credential: Option<String>,
    /// It may take so long.
    pub within: Duration,
}

/// One run of a tool call.
#[derive(Debug)]
pub struct ToolJob {
    /// Who gets the news; also the kid's supervisor.
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
    /// What it may do.
    pub mandate: Mandate,
}

/// Files and the conversation are put back.
#[derive(Debug)]
pub struct ReworkJob {
    /// Who gets the news; also the kid's supervisor.
    pub to: ActorRef<SessionMsg>,
    /// Whose.
    pub session: SessionId,
    /// What.
    pub work: OpenHistory,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// Who admits it.
    pub executor: Handle<ToolMsg>,
    /// Where the log is read.
    pub store: Handle<StoreMsg>,
    /// How long a read may take.
    pub within: Duration,
}

/// Starts kids, linked to the loop that asks.
#[async_trait]
pub trait Workers: Debug + Send + Sync {
    /// Starts an attempt of a model call.
    async fn model(&self, job: ModelJob) -> Result<ActorCell, SpawnErr>;
    /// Starts a run of a tool call.
    async fn tool(&self, job: ToolJob) -> Result<ActorCell, SpawnErr>;
    /// Has a request counted; who has nobody to ask says so.
    async fn count(&self, job: CountJob) -> Result<ActorCell, SpawnErr> {
        let supervisor = job.to.get_cell();
        let CountJob { to, call, .. } = job;
        let work = async move {
            let _ = to.cast(SessionMsg::Counted { call, tokens: None });
        };
        spawn_kid(work, supervisor).await
    }
    /// Starts to put files and the conversation back.
    async fn rework(&self, job: ReworkJob) -> Result<ActorCell, SpawnErr> {
        let supervisor = job.to.get_cell();
        spawn_kid(rework::work(job), supervisor).await
    }
}
