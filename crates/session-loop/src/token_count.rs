//! Token counting: a worker has the provider count the next request.

use crate::shell::Shell;
use crate::workers::CountJob;
use agentd_protocol::RequestPart;
use agentd_provider::Adjust;
use agentd_turn::{Answer, QuestionId};
use std::sync::Arc;
use std::time::Duration;

impl Shell {
    /// The worker's job, if the model's provider runs.
    pub(crate) fn count_job(
        &self,
        id: QuestionId,
        model: &str,
        credential: Option<String>,
        without: Vec<RequestPart>,
        within: Duration,
    ) -> Option<CountJob> {
        let (of, client) = self.services.models.get(model).ok()?;
        let created = self.core.agent.durable().settings.as_ref();
        let adjust = Adjust {
            tool_protocol: created.and_then(|created| created.limits.tool_protocol),
            max_output: created.and_then(|created| created.limits.max_output),
            without,
            ..Adjust::default()
        };
        let spec = Arc::new(of.adjusted(&adjust));
        Some(CountJob {
            to: self.me.clone(),
            id,
            body: self.requests.ahead(&self.toolset, &spec, &self.core.transcript),
            spec,
            client,
            credential,
            within,
        })
    }

    /// Has the next request counted.
    pub(crate) async fn count_tokens(&mut self, id: QuestionId, job: Option<CountJob>) {
        match job {
            Some(job) => {
                let worker = self.services.workers.count(job).await;
                self.asked(id, worker);
            }
            None => self
                .core
                .answer(id, Answer::Nobody("its provider does not run".to_owned())),
        }
    }
}
