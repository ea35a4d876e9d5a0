//! The question for a summary, asked at the end of the conversation: the request has the tools, the system prompt and the
//! messages of the session's own requests, so the provider reads them from its cache. Where that does not work, the
//! conversation is retold to the model in parts.

use crate::compacting::{Compacting, bytes, max_output};
use crate::shell::Shell;
use crate::side::once;
use crate::workers::ModelJob;
use agentd_actor_kit::Work;
use agentd_protocol::{Block, CompactionCause, FailureClass, ToolProtocol};
use agentd_provider::{Adjust, ModelSpec, thinking_tokens};
use agentd_transcript::{SUMMARISER, estimate_tokens, retelling, summary_request, summary_tokens};
use agentd_turn::{ModelAnswer, ModelFailure};
use std::sync::Arc;

/// Percent of the available room that one part of the conversation may take, since the estimate may be wrong.
const PART_PERCENT: u64 = 60;
/// The assumed window when the real one is unknown.
const CAREFUL_WINDOW: u64 = 16_000;

impl Shell {
    /// Asks for the summary: in the conversation if it fits, otherwise about it.
    pub(crate) async fn ask_for_summary(&mut self, mut compacting: Box<Compacting>, cause: CompactionCause) {
        let job = match self.question_in_conversation(&compacting, cause) {
            Ok(job) => job,
            Err(why) => return self.retell(compacting, why).await,
        };
        let (call, attempt) = (compacting.call, 1);
        match self.services.workers.model(job).await {
            Ok(worker) => {
                self.running.add(worker, Work::Model { call, attempt });
                compacting.in_conversation = true;
                self.compacting = Some(compacting);
            }
            Err(_) => self.without_a_model(*compacting, "the call could not be started"),
        }
        self.live.touch();
    }

    fn question_in_conversation(
        &mut self,
        compacting: &Compacting,
        cause: CompactionCause,
    ) -> Result<ModelJob, &'static str> {
        if cause == CompactionCause::Overflow {
            return Err("the conversation no longer fits the model's window");
        }
        let by = &compacting.by;
        if self.requests.went_elsewhere(&by.model) {
            return Err("the model changed, so nothing is in its cache");
        }
        let services = Arc::clone(&self.services);
        let (of, client) = services
            .models
            .get(&by.model)
            .map_err(|_| "the model is not ready")?;
        let question = summary_request();
        let tokens = self.tokens_with(&question);
        let adjust = self.adjusted_for(compacting, &of, tokens)?;
        let spec = self.requests.adjusted(of, adjust);
        let sample = services.models.sample(&by.model);
        let body = self
            .requests
            .asking(&self.toolset, &spec, &self.core.transcript, &question, sample);
        let tools = match spec.tool_protocol {
            ToolProtocol::Native => Vec::new(),
            ToolProtocol::JsonText => self.toolset.offered().to_vec(),
        };
        let messages = match spec.record {
            Some(_) => self.core.transcript.asking(&question),
            None => Vec::new(),
        };
        let created = self.core.agent.durable().settings.as_ref();
        Ok(ModelJob {
            to: self.me.clone(),
            call: compacting.call,
            attempt: 1,
            ask: services.sharing.ask(
                self.session,
                created,
                &spec,
                (by.credential.clone(), false),
                tokens,
            ),
            spec,
            client,
            tools,
            body,
            messages,
        })
    }

    /// The approximate tokens of the conversation and of a question at its end.
    fn tokens_with(&self, question: &str) -> u64 {
        let transcript = &self.core.transcript;
        let frame = if transcript.counted() {
            0
        } else {
            self.requests.frame_tokens()
        };
        transcript
            .estimate_tokens()
            .saturating_add(frame)
            .saturating_add(estimate_tokens(question))
    }

    /// The adjustments of the session's own requests. The output limit may shrink to the room that is left.
    fn adjusted_for(
        &self,
        compacting: &Compacting,
        of: &ModelSpec,
        tokens: u64,
    ) -> Result<Adjust, &'static str> {
        let by = &compacting.by;
        let durable = self.core.agent.durable();
        let created = durable.settings.as_ref();
        let mut without = by.without.clone();
        self.services.models.share_lessons(&of.provider, &mut without);
        let mut adjust = Adjust {
            thinking: by.thinking,
            tool_protocol: created.and_then(|created| created.limits.tool_protocol),
            max_output: created.and_then(|created| created.limits.max_output),
            without,
            window: by.window,
            cache_hour: durable.outer.warm.as_ref().is_some_and(|warm| warm.hour),
        };
        let usual = of.adjusted(&adjust);
        // The budget of thinking within the limit must not shrink: caches depend on it.
        let least = max_output(&usual, &compacting.plan).saturating_add(thinking_tokens(&usual));
        let room = by.window.map(|window| window.saturating_sub(tokens));
        let limit = output_limit(room, usual.max_output, least)
            .ok_or("the conversation leaves no room for a summary in the model's window")?;
        if limit < usual.max_output {
            adjust.max_output = Some(limit);
        }
        Ok(adjust)
    }

    /// Has the model read the conversation in parts, with a system prompt of their own.
    pub(crate) async fn retell(&mut self, mut compacting: Box<Compacting>, why: &str) {
        tracing::info!(session = %self.session, why, "a summary within the conversation is not possible here");
        let Ok((of, _)) = self.services.models.get(&compacting.by.model) else {
            return self.without_a_model(*compacting, "the model is not ready");
        };
        let by = &compacting.by;
        let spec = Arc::new(of.adjusted(&Adjust {
            without: once(by.without.clone()),
            window: by.window,
            ..Adjust::default()
        }));
        let window = by.window.unwrap_or(CAREFUL_WINDOW);
        let plan = &compacting.plan;
        let words = estimate_tokens(&retelling("", "")).saturating_add(estimate_tokens(SUMMARISER));
        let besides = max_output(&spec, plan)
            .saturating_add(summary_tokens(plan.tokens_before))
            .saturating_add(words);
        let room = window.saturating_sub(besides);
        let transcript = &self.core.transcript;
        let parts = transcript.parts_to_retell(plan, bytes(room, PART_PERCENT));
        if parts.is_empty() {
            return self.without_a_model(*compacting, "the model's window is too small");
        }
        compacting.in_conversation = false;
        compacting.plan.retold_because = Some(why.to_owned());
        (compacting.spec, compacting.parts) = (spec, parts.into());
        self.compacting = Some(compacting);
        self.next_part().await;
    }
}

/// The output limit in the room that the conversation leaves: at most the usual one. None: a summary needs more.
fn output_limit(room: Option<u64>, usual: u32, least: u64) -> Option<u32> {
    let room = room.map_or(usual, |room| u32::try_from(room).unwrap_or(u32::MAX));
    (u64::from(room) >= least.min(usual.into())).then_some(room.min(usual))
}

/// Why an answer in the conversation is no summary. Whatever it calls is not run.
pub(crate) fn no_summary(answer: &ModelAnswer) -> Option<&'static str> {
    let calls = |block: &Block| matches!(block, Block::ToolUse { .. });
    answer
        .content
        .iter()
        .any(calls)
        .then_some("the model called a tool instead of writing the summary")
}

/// Why to retell the conversation after this failure; none: the model would fail at that, too.
pub(crate) const fn other_way(failure: &ModelFailure) -> Option<&'static str> {
    match failure.class {
        FailureClass::ContextOverflow => Some("the conversation no longer fits the model's window"),
        FailureClass::InvalidRequest => {
            Some("the provider refused the request for a summary in the conversation")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::output_limit;

    #[test]
    fn the_answer_takes_the_room_that_is_left_if_a_summary_fits_into_it() {
        assert_eq!(
            output_limit(None, 8_192, 4_096),
            Some(8_192),
            "the window is unknown"
        );
        assert_eq!(output_limit(Some(8_193), 8_192, 4_096), Some(8_192));
        assert_eq!(output_limit(Some(4_096), 8_192, 4_096), Some(4_096));
        assert_eq!(output_limit(Some(4_095), 8_192, 4_096), None);
        // A model whose answers are always shorter writes a shorter summary.
        assert_eq!(output_limit(Some(2_000), 2_000, 4_096), Some(2_000));
        assert_eq!(output_limit(Some(1_999), 2_000, 4_096), None);
    }
}
