//! Compaction of a conversation: immediately where the plan alone is enough, or after some model calls where a model
//! writes the summary. If those fail in any way, the summary that needs no model replaces theirs.

use crate::error::LoopError;
use crate::shell::Shell;
use crate::side::{Question, words_of};
use crate::summary_call::{no_summary, other_way};
use crate::workers::ModelJob;
use agentd_actor_kit::{Alarm, CallEvent, SessionMsg, Work};
use agentd_protocol::{CallId, CompactionCause, ContextCompacted, ContextPruned, SidePurpose, Usage};
use agentd_provider::{Dialect, ModelSpec};
use agentd_text::redact_known;
use agentd_transcript::{SUMMARISER, pruning_helps, retelling, summary_tokens};
use agentd_turn::{Answer, ModelAnswer, QuestionId, Shrink, Shrunk, SideEnded, Summariser};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Bytes per token, in the worst case of the estimate.
const BYTES_PER_TOKEN: u64 = 3;
/// The minimum output; a model that thinks before it writes needs room for that, too.
const LEAST_OUTPUT: u64 = 4_096;

/// A requested compaction.
#[derive(Debug)]
pub(crate) struct Shortening {
    pub(crate) id: QuestionId,
    pub(crate) how: Shrink,
    pub(crate) target_tokens: u64,
    pub(crate) cause: CompactionCause,
    pub(crate) summariser: Option<Summariser>,
}

/// A summary that a model is writing.
#[derive(Debug)]
pub(crate) struct Compacting {
    /// The request that it answers.
    id: QuestionId,
    /// The fallback summary that needs no model, and the range that it replaces.
    pub(crate) plan: ContextCompacted,
    /// The current model call.
    pub(crate) call: CallId,
    pub(crate) by: Summariser,
    /// The request for a summary stands at the end of the conversation. Otherwise the conversation is retold in parts.
    pub(crate) in_conversation: bool,
    /// The model that reads the parts.
    pub(crate) spec: Arc<ModelSpec>,
    pub(crate) parts: VecDeque<String>,
    so_far: String,
    usage: Usage,
    cost_usd: Option<f64>,
    _deadline: Alarm,
}

impl Shell {
    /// Compacts the conversation. The answer is the core's next input.
    pub(crate) async fn shorten(&mut self, wanted: Shortening) {
        // This is where a hook that may veto a compaction would be asked; its veto is `Shrunk::Vetoed`.
        tracing::debug!(session = %self.session, how = ?wanted.how, cause = wanted.cause.as_str(), "shorter");
        let rules = self.services.config.now().context;
        let target = wanted.target_tokens;
        let transcript = &self.core.transcript;
        let shrunk = match wanted.how {
            Shrink::Compact => match transcript.plan_compaction(rules.keep_recent_tokens, target) {
                Some(plan) => return self.compact(wanted, plan).await,
                None => None,
            },
            Shrink::TruncateResults => transcript.plan_truncation(target).map(Shrunk::Truncated),
            Shrink::CapResults => transcript.plan_cap(bytes(target, 100)).map(Shrunk::Truncated),
            Shrink::Prune => transcript
                .plan_pruning(rules.prune_protect_tokens, rules.prune_min_tokens)
                .filter(|plan| self.helps(plan, target))
                .map(Shrunk::Pruned),
            Shrink::Trim => transcript
                .plan_trimming(self.core.agent.durable().limits().max_messages as usize)
                .map(Shrunk::Trimmed),
        };
        self.shrunk(wanted.id, shrunk.unwrap_or(Shrunk::Nothing));
    }

    /// Whether a pruning is worth it. A session is expected to take as many further steps as it has taken.
    fn helps(&self, plan: &ContextPruned, line: u64) -> bool {
        let durable = self.core.agent.durable();
        let spec = self.services.models.get(durable.model()).ok();
        let price = spec.and_then(|(spec, _)| spec.price);
        pruning_helps(plan, line, durable.totals.steps, price)
    }

    fn shrunk(&mut self, id: QuestionId, shrunk: Shrunk) {
        self.core.answer(id, Answer::Shortened(shrunk));
    }

    async fn compact(&mut self, wanted: Shortening, plan: ContextCompacted) {
        let (id, cause) = (wanted.id, wanted.cause);
        match self.compacting(wanted, &plan) {
            Some(compacting) => self.ask_for_summary(Box::new(compacting), cause).await,
            None => self.shrunk(id, Shrunk::Compacted(plan)),
        }
    }

    /// Prepares a summary by a model, if a suitable model exists.
    fn compacting(&self, wanted: Shortening, plan: &ContextCompacted) -> Option<Compacting> {
        let by = wanted.summariser?;
        let (of, _) = self.services.models.get(&by.model).ok()?;
        // A script knows only its own conversation.
        if of.dialect == Dialect::Scripted {
            return None;
        }
        let call = self.services.clock.stamp().call();
        let within = Duration::from_millis(by.within_ms);
        let overdue = SessionMsg::CompactionOverdue { id: wanted.id };
        Some(Compacting {
            id: wanted.id,
            plan: plan.clone(),
            call,
            by,
            in_conversation: false,
            spec: of,
            parts: VecDeque::new(),
            so_far: String::new(),
            usage: Usage::default(),
            cost_usd: None,
            _deadline: Alarm::set(&self.me, within, overdue),
        })
    }

    /// Has the model summarise the next part; when no part is left, the summary is complete.
    pub(crate) async fn next_part(&mut self) {
        let Some(mut compacting) = self.compacting.take() else {
            return;
        };
        let Some(part) = compacting.parts.pop_front() else {
            return self.summarised(*compacting);
        };
        compacting.call = self.services.clock.stamp().call();
        let job = self.part_job(&compacting, &part);
        let (call, attempt) = (compacting.call, 1);
        let started = match job {
            Some(job) => self.services.workers.model(job).await.ok(),
            None => None,
        };
        match started {
            Some(worker) => {
                self.running.add(worker, Work::Model { call, attempt });
                self.compacting = Some(compacting);
            }
            None => self.without_a_model(*compacting, "the call could not be started"),
        }
        self.live.touch();
    }

    fn part_job(&self, compacting: &Compacting, part: &str) -> Option<ModelJob> {
        let spec = &compacting.spec;
        self.side_job(Question {
            call: compacting.call,
            spec: Arc::clone(spec),
            model: &compacting.by.model,
            credential: compacting.by.credential.clone(),
            system: SUMMARISER,
            text: retelling(&compacting.so_far, part),
            schema: None,
            max_output: u32::try_from(max_output(spec, &compacting.plan)).unwrap_or(u32::MAX),
            in_background: false,
        })
    }

    /// Whether the call works on the summary.
    pub(crate) fn summarises(&self, call: CallId) -> bool {
        self.compacting.as_ref().is_some_and(|run| run.call == call)
    }

    /// Handles an event of the call that writes the summary. Its deltas are not shown to viewers.
    pub(crate) async fn summary_news(&mut self, event: CallEvent) -> Result<(), LoopError> {
        let why = match event {
            CallEvent::Waiting(_) | CallEvent::Granted { .. } | CallEvent::Delta(..) => return Ok(()),
            CallEvent::Answered(answer) => match self.part_told(&answer) {
                Ok(()) => {
                    self.next_part().await;
                    return self.run_followers().await;
                }
                Err(why) => (why.to_owned(), no_summary(&answer)),
            },
            CallEvent::Failed(failure) => {
                let other_way = other_way(&failure);
                (failure.message, other_way)
            }
        };
        match (self.compacting.take(), why) {
            (Some(compacting), (_, Some(why))) if compacting.in_conversation => {
                self.retell(compacting, why).await;
            }
            (Some(compacting), (why, _)) => self.without_a_model(*compacting, &why),
            (None, _) => {}
        }
        self.run_followers().await
    }

    fn part_told(&mut self, answer: &ModelAnswer) -> Result<(), &'static str> {
        let compacting = self.compacting.as_mut().ok_or("no one asked")?;
        compacting.usage = compacting.usage.plus(answer.usage);
        if let Some(cost) = answer.cost_usd {
            *compacting.cost_usd.get_or_insert_default() += cost;
        }
        if let (true, Some(why)) = (compacting.in_conversation, no_summary(answer)) {
            return Err(why);
        }
        let text = words_of(answer);
        if text.trim().is_empty() {
            return Err("the model wrote no summary");
        }
        // The model may have read a key in the conversation before it was registered as a credential (I8).
        compacting.so_far = redact_known(&text).into_owned();
        // The next part has to fit in alongside the summary.
        let most = bytes(summary_tokens(compacting.plan.tokens_before), 100);
        let end = compacting.so_far.floor_char_boundary(most);
        compacting.so_far.truncate(end);
        Ok(())
    }

    fn summarised(&mut self, compacting: Compacting) {
        match self
            .core
            .transcript
            .with_summary(&compacting.plan, &compacting.so_far)
        {
            Some(mut told) => {
                told.summarised_by = Some(compacting.by.model);
                told.usage = Some(compacting.usage);
                told.cost_usd = compacting.cost_usd;
                self.shrunk(compacting.id, Shrunk::Compacted(told));
            }
            None => self.without_a_model(compacting, "the model's summary would save nothing"),
        }
    }

    /// Uses the summary that needs no model. The cost of the other one is still counted.
    pub(crate) fn without_a_model(&mut self, compacting: Compacting, why: &str) {
        tracing::warn!(session = %self.session, why, "no model wrote the summary; making one without a model");
        self.running.kill(&Work::Model {
            call: compacting.call,
            attempt: 1,
        });
        let mut plan = compacting.plan;
        plan.usage = (compacting.usage.total() > 0).then_some(compacting.usage);
        plan.cost_usd = compacting.cost_usd;
        plan.retold_because = None;
        self.shrunk(compacting.id, Shrunk::Compacted(plan));
    }

    /// Gives up on the model's summary: it takes too long, or the daemon drains.
    pub(crate) async fn hurry_summary(&mut self, of: Option<QuestionId>, why: &str) -> Result<(), LoopError> {
        let Some(compacting) = self.compacting.take_if(|run| of.is_none_or(|of| of == run.id)) else {
            return Ok(());
        };
        self.without_a_model(*compacting, why);
        self.run_followers().await
    }

    /// The summary is no longer wanted. The cost of the finished parts is recorded; the cost of the part that was cut off
    /// is unknown.
    pub(crate) fn stop_shortening(&mut self, id: QuestionId) {
        let Some(compacting) = self.compacting.take_if(|run| run.id == id) else {
            return;
        };
        let call = compacting.call;
        self.running.kill(&Work::Model { call, attempt: 1 });
        if compacting.usage.total() > 0 || compacting.cost_usd.is_some() {
            let cost = SideEnded {
                call,
                purpose: SidePurpose::Compaction,
                model: compacting.by.model,
                text: Err("no caller waits for the result any more".to_owned()),
                usage: compacting.usage,
                cost_usd: compacting.cost_usd,
            };
            self.core.answer(id, Answer::Side(cost));
        }
    }
}

/// The maximum output tokens of one answer.
pub(crate) fn max_output(spec: &ModelSpec, plan: &ContextCompacted) -> u64 {
    let wanted = summary_tokens(plan.tokens_before).saturating_mul(2);
    wanted.max(LEAST_OUTPUT).min(spec.max_output.into())
}

/// This percentage of the tokens, in bytes.
pub(crate) fn bytes(tokens: u64, percent: u64) -> usize {
    let bytes = tokens.saturating_mul(BYTES_PER_TOKEN).saturating_mul(percent) / 100;
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
