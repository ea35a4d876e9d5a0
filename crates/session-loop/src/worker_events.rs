//! Events from workers. Each carries the work it belongs to; the loop drops those that are not current.

use crate::error::LoopError;
use crate::shell::Shell;
use crate::stages::of_status;
use crate::work::Task;
use agentd_actor_kit::{CallEvent, CallStage, Down, FeedMsg, RunEvent, Work};
use agentd_protocol::{CallId, Delta, FailureClass, ToolCallId, ToolOutcome, ToolStatus};
use agentd_turn::{Answer, Input, ModelFailure};

impl Shell {
    /// An event of a model call.
    pub(crate) async fn model_news(
        &mut self,
        call: CallId,
        attempt: u32,
        event: CallEvent,
    ) -> Result<(), LoopError> {
        if self.summarises(call) {
            return self.summary_news(event).await;
        }
        if self.is_beside(call) {
            return self.side_news(call, event).await;
        }
        let id = (call, attempt);
        if !self.core.is_running(id) {
            return Ok(());
        }
        match event {
            CallEvent::Waiting(place) => {
                self.core.model_waits(id, place);
                self.live.touch();
            }
            CallEvent::Granted { window } => {
                self.core.model_granted(id, window);
                self.live.touch();
            }
            CallEvent::Delta(delta, _credit) => {
                if let Delta::Text(fragment) = &delta {
                    self.core.model_text(id, fragment.text.clone());
                }
                self.services.feed.cast(FeedMsg::Delta {
                    session: self.session,
                    delta,
                });
            }
            CallEvent::Answered(answer) => {
                tracing::info!(
                    session = %self.session, %call, attempt, stop = ?answer.stop_reason,
                    tokens = answer.usage.total(), ms = answer.latency.total_ms, "the model answered"
                );
                self.core.model_answered(id, *answer);
            }
            CallEvent::Failed(failure) => {
                tracing::warn!(session = %self.session, %call, attempt, class = ?failure.class, "the model call failed");
                self.core.model_failed(id, failure);
            }
        }
        self.run_followers().await
    }

    /// An event of a tool call.
    pub(crate) async fn tool_news(
        &mut self,
        tool_call: ToolCallId,
        attempt: u32,
        event: RunEvent,
    ) -> Result<(), LoopError> {
        let Some(run) = self
            .tools
            .get_mut(&tool_call)
            .filter(|run| run.attempt == attempt)
        else {
            return Ok(());
        };
        match event {
            RunEvent::Waiting => {
                run.waits = true;
                self.live.touch();
            }
            RunEvent::Granted => {
                run.waits = false;
                self.live.touch();
            }
            RunEvent::Output(delta, _credit) => {
                self.services.feed.cast(FeedMsg::Delta {
                    session: self.session,
                    delta,
                });
            }
            RunEvent::Ended(outcome, blobs) => {
                self.leaves(tool_call, CallStage::Execution, of_status(outcome.status));
                let Some((outcome, blobs)) = self.tell_hooks(tool_call, outcome, blobs).await else {
                    return Ok(());
                };
                self.leaves(tool_call, CallStage::PostHook, "skipped");
                self.tools.remove(&tool_call);
                let outcome = *outcome;
                return self
                    .run(Task::with_blobs(Input::ToolEnded { tool_call, outcome }, blobs))
                    .await;
            }
        }
        Ok(())
    }

    /// A worker is down. If its result arrived first, its work is no longer current and nothing is left to do.
    pub(crate) async fn down(&mut self, work: Work, why: Down) -> Result<(), LoopError> {
        match work {
            Work::Model { call, attempt } => {
                let failure = failure(&why);
                self.model_news(call, attempt, CallEvent::Failed(failure)).await
            }
            Work::Hooks { tool_call, attempt } => {
                let lost = self.lost(tool_call, &why.to_string());
                self.hooked(tool_call, attempt, lost).await
            }
            Work::Question { id } => {
                let answer = Answer::Nobody(why.to_string());
                self.advance(Input::Answered { id, answer }).await
            }
            Work::Tool { tool_call, attempt } => {
                let outcome = ToolOutcome::text(ToolStatus::Error, last_words(&why)).coded("E_TOOL");
                self.tool_news(tool_call, attempt, RunEvent::Ended(Box::new(outcome), Vec::new()))
                    .await
            }
        }
    }
}

fn failure(why: &Down) -> ModelFailure {
    let (class, message) = match why {
        Down::Failed(why) => (FailureClass::Internal, format!("the model call panicked: {why}")),
        Down::Killed(why) => (
            FailureClass::Transient,
            format!("the model call was stopped: {why}"),
        ),
    };
    ModelFailure::new(class, message)
}

fn last_words(why: &Down) -> String {
    match why {
        Down::Failed(why) => format!("the tool panicked: {why}"),
        Down::Killed(why) => format!("the tool was stopped: {why}"),
    }
}
