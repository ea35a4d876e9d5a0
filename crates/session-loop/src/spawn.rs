//! Starts the workers of model calls and tool calls.

use crate::workers::{CountJob, ModelJob, ToolJob, Workers};
use agentd_actor_kit::{Handle, StoreMsg};
use agentd_model_client::{CallStart, CountStart, ModelCall, TokenCount};
use agentd_tool_executor::{ToolCall, ToolStart};
use agentd_tools::Remote;
use async_trait::async_trait;
use ractor::{ActorCell, SpawnErr};
use std::sync::Arc;

/// The real implementation of [`Workers`]: starts model calls and tool calls.
#[derive(Debug)]
pub struct WorkerSpawner {
    /// The HTTP client of the process.
    pub http: reqwest::Client,
    /// Stores output that is too long for the log.
    pub store: Handle<StoreMsg>,
    /// Runs the tools of servers, if there are any.
    pub remote: Option<Arc<dyn Remote>>,
}

#[async_trait]
impl Workers for WorkerSpawner {
    async fn model(&self, job: ModelJob) -> Result<ActorCell, SpawnErr> {
        let supervisor = job.to.get_cell();
        let start = CallStart {
            to: job.to,
            call: job.call,
            attempt: job.attempt,
            spec: job.spec,
            client: job.client,
            ask: job.ask,
            tools: job.tools,
            http: self.http.clone(),
            body: job.body,
            messages: job.messages,
        };
        ModelCall::start(start, supervisor).await
    }

    async fn count(&self, job: CountJob) -> Result<ActorCell, SpawnErr> {
        let supervisor = job.to.get_cell();
        let start = CountStart {
            to: job.to,
            id: job.id,
            spec: job.spec,
            client: job.client,
            http: self.http.clone(),
            body: job.body,
            credential: job.credential,
            within: job.within,
        };
        TokenCount::start(start, supervisor).await
    }

    async fn tool(&self, job: ToolJob) -> Result<ActorCell, SpawnErr> {
        let supervisor = job.to.get_cell();
        let start = ToolStart {
            to: job.to,
            session: job.session,
            tool_call: job.tool_call,
            attempt: job.attempt,
            prepared: job.prepared,
            workdir: job.workdir,
            seen: job.seen,
            jobs: job.jobs,
            executor: job.executor,
            store: self.store.clone(),
            remote: self.remote.clone(),
            mandate: job.mandate,
        };
        ToolCall::start(start, supervisor).await
    }
}
