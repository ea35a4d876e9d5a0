//! Token counting: a worker has the provider count the next request.

use crate::error::LoopError;
use crate::shell::Shell;
use crate::workers::CountJob;
use agentd_actor_kit::{SessionMsg, Work};
use agentd_protocol::{CallId, RequestPart};
use agentd_provider::Adjust;
use agentd_turn::Input;
use std::sync::Arc;
use std::time::Duration;

/// The request to count tokens.
#[derive(Debug)]
pub(crate) struct CountRequest {
    pub(crate) call: CallId,
    /// The configured name of the model.
    pub(crate) model: String,
    pub(crate) credential: Option<String>,
    pub(crate) without: Vec<RequestPart>,
    pub(crate) within_ms: u64,
}

impl Shell {
    /// Has the next request counted. If the worker cannot start, the answer is that there is no count.
    pub(crate) async fn count_tokens(&mut self, request: CountRequest) {
        let (call, model) = (request.call, request.model.clone());
        self.counting = Some((call, model));
        let started = match self.count_job(request) {
            Some(job) => self.services.workers.count(job).await.ok(),
            None => None,
        };
        match started {
            Some(worker) => self.running.add(worker, Work::Count { call }),
            None => {
                let _ = self.me.cast(SessionMsg::Counted { call, tokens: None });
            }
        }
        self.live.touch();
    }

    fn count_job(&self, request: CountRequest) -> Option<CountJob> {
        let (of, client) = self.services.models.get(&request.model).ok()?;
        let created = self.core.agent.durable().settings.as_ref();
        let adjust = Adjust {
            tool_protocol: created.and_then(|created| created.limits.tool_protocol),
            max_output: created.and_then(|created| created.limits.max_output),
            without: request.without,
            ..Adjust::default()
        };
        let spec = Arc::new(of.adjusted(&adjust));
        Some(CountJob {
            to: self.me.clone(),
            call: request.call,
            body: self.requests.ahead(&self.toolset, &spec, &self.core.transcript),
            spec,
            client,
            credential: request.credential,
            within: Duration::from_millis(request.within_ms),
        })
    }

    /// The count arrived, or failed.
    pub(crate) async fn tokens_counted(
        &mut self,
        call: CallId,
        tokens: Option<u64>,
    ) -> Result<(), LoopError> {
        let Some((_, model)) = self.counting.take_if(|(running, _)| *running == call) else {
            return Ok(());
        };
        if let Some(tokens) = tokens
            && let Ok((spec, _)) = self.services.models.get(&model)
        {
            tracing::debug!(session = %self.session, tokens, estimate = self.core.transcript.estimate_tokens(), "counted");
            self.core.transcript.counted_as(&spec.model, tokens);
        }
        self.advance(Input::Counted { call }).await
    }

    /// Drops a count that is no longer wanted.
    pub(crate) fn drop_count(&mut self, call: CallId) {
        if self.counting.take_if(|(running, _)| *running == call).is_some() {
            self.running.kill(&Work::Count { call });
            self.live.touch();
        }
    }
}
