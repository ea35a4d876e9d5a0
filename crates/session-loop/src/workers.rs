//! Starts the workers of a loop.

use crate::rework;
use agentd_actor_kit::{Ask, Handle, ModelMsg, SessionMsg, StoreMsg, ToolMsg, spawn_worker};
use agentd_checkpoint::Archive;
use agentd_protocol::{CallId, Message, SessionId, ToolCallId};
use agentd_provider::{ModelSpec, RequestBody};
use agentd_tool_executor::Mandate;
use agentd_tools::{FilesSeen, Jobs, Prepared};
use agentd_turn::{Answer, OpenHistory, QuestionId};
use async_trait::async_trait;
use ractor::{ActorCell, ActorRef, SpawnErr};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One attempt of a model call.
#[derive(Debug)]
pub struct ModelJob {
    /// Receives the events; also the worker's supervisor.
    pub to: ActorRef<SessionMsg>,
    /// The model call.
    pub call: CallId,
    /// The attempt.
    pub attempt: u32,
    /// The model.
    pub spec: Arc<ModelSpec>,
    /// Grants its permit.
    pub client: Handle<ModelMsg>,
    /// The requirements that it states to the provider's scheduler.
    pub ask: Ask,
    /// The names of the tools, for models that write calls as text.
    pub tools: Vec<String>,
    /// The request body.
    pub body: RequestBody,
    /// The conversation, for a scripted or recorded model; empty for all others.
    pub messages: Vec<Arc<Message>>,
}

/// A request whose tokens are to be counted.
#[derive(Debug)]
pub struct CountJob {
    /// Receives the answer; also the worker's supervisor.
    pub to: ActorRef<SessionMsg>,
    /// Returned with the answer.
    pub id: QuestionId,
    /// The model.
    pub spec: Arc<ModelSpec>,
    /// Remembers which servers can count.
    pub client: Handle<ModelMsg>,
    /// The request.
    pub body: RequestBody,
    /// The credential to use.
    pub credential: Option<String>,
    /// The time limit.
    pub within: Duration,
}

/// One run of a tool call.
#[derive(Debug)]
pub struct ToolJob {
    /// Receives the events; also the worker's supervisor.
    pub to: ActorRef<SessionMsg>,
    /// The owning session.
    pub session: SessionId,
    /// The tool call.
    pub tool_call: ToolCallId,
    /// The number of the run.
    pub attempt: u32,
    /// The checked call.
    pub prepared: Prepared,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// The files that the session knows.
    pub seen: Arc<FilesSeen>,
    /// The session's background jobs.
    pub jobs: Jobs,
    /// Grants its permit.
    pub executor: Handle<ToolMsg>,
    /// The call's permissions.
    pub mandate: Mandate,
}

/// A restoration of files and the conversation.
#[derive(Debug)]
pub struct ReworkJob {
    /// Receives the events; also the worker's supervisor.
    pub to: ActorRef<SessionMsg>,
    /// The question that it answers.
    pub id: QuestionId,
    /// The owning session.
    pub session: SessionId,
    /// The work to do.
    pub work: OpenHistory,
    /// The session's working directory.
    pub workdir: PathBuf,
    /// Grants its permit.
    pub executor: Handle<ToolMsg>,
    /// The store that has the log.
    pub store: Handle<StoreMsg>,
    /// The recorded files of the working directory.
    pub archive: Archive,
    /// How long a read may take.
    pub within: Duration,
}

/// Starts workers, linked to the loop that requests them.
#[async_trait]
pub trait Workers: Debug + Send + Sync {
    /// Starts an attempt of a model call.
    async fn model(&self, job: ModelJob) -> Result<ActorCell, SpawnErr>;
    /// Starts a run of a tool call.
    async fn tool(&self, job: ToolJob) -> Result<ActorCell, SpawnErr>;
    /// Has a request counted; without a model to ask, the answer is that there is no count.
    async fn count(&self, job: CountJob) -> Result<ActorCell, SpawnErr> {
        let supervisor = job.to.get_cell();
        let CountJob { to, id, .. } = job;
        let work = async move {
            let answer = Box::new(Answer::Nobody("no model can be asked".to_owned()));
            let _ = to.cast(SessionMsg::Answered { id, answer });
        };
        spawn_worker(work, supervisor).await
    }
    /// Starts to restore files and the conversation.
    async fn rework(&self, job: ReworkJob) -> Result<ActorCell, SpawnErr> {
        let supervisor = job.to.get_cell();
        spawn_worker(rework::work(job), supervisor).await
    }
}
