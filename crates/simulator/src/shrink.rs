//! Shortens a conversation: immediately if a plan is enough, after a model call if a model writes the summary. If that
//! call fails in any way, the summary that needs no model is used.

use crate::hot::{Compacting, Hot};
use crate::messages::{Happening, Message, News};
use crate::models::Call;
use crate::workers::Work;
use crate::world::World;
use agentd_protocol::{Block, ContextCompacted};
use agentd_turn::{Answer, QuestionId, Shrink, Shrunk, Summariser};

/// Bytes per token in the estimate's worst case.
const BYTES_PER_TOKEN: u64 = 3;

impl World {
    pub(crate) fn stop_shortening(&mut self, hot: &mut Hot, id: QuestionId) {
        if let Some(run) = hot.compacting.take_if(|run| run.id == id) {
            self.kill(run.worker);
        }
    }

    pub(crate) fn shorten(
        &mut self,
        hot: &mut Hot,
        id: QuestionId,
        how: Shrink,
        target: u64,
        by: Option<Summariser>,
    ) {
        let rules = self.config.context;
        let transcript = &hot.core.transcript();
        let shrunk = match how {
            Shrink::Compact => match transcript.plan_compaction(rules.keep_recent_tokens, target) {
                Some(plan) => return self.compact(hot, id, plan, by),
                None => None,
            },
            Shrink::TruncateResults => transcript.plan_truncation(target).map(Shrunk::Truncated),
            Shrink::CapResults => {
                let bytes = usize::try_from(target.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
                transcript.plan_cap(bytes).map(Shrunk::Truncated)
            }
            Shrink::Prune => transcript
                .plan_pruning(rules.prune_protect_tokens, rules.prune_min_tokens)
                .map(Shrunk::Pruned),
            Shrink::Trim => {
                let most = hot.core.agent().durable().limits().max_messages as usize;
                transcript.plan_trimming(most).map(Shrunk::Trimmed)
            }
        };
        shrunk_to(hot, id, shrunk.unwrap_or(Shrunk::Nothing));
    }

    fn compact(&mut self, hot: &mut Hot, id: QuestionId, plan: ContextCompacted, by: Option<Summariser>) {
        let facts = by.as_ref().and_then(|by| self.here.models.facts(&by.model).ok());
        let Some((by, facts)) = by.zip(facts).filter(|_| self.dice.percent(80)) else {
            return shrunk_to(hot, id, Shrunk::Compacted(plan));
        };
        let call = self.dice.stamp(self.now).call();
        let mut side = Call::new((call, 1), &facts, plan.tokens_before / 2, (by.credential, false));
        side.summary = true;
        let worker = self.spawn(hot.number, hot.session, Work::Model(Box::new(side)), 5);
        let overdue = Message::SummaryOverdue { id };
        self.post(by.within_ms, Happening::Loop(hot.number, overdue));
        hot.compacting = Some(Compacting {
            id,
            plan,
            call,
            model: by.model,
            usage: None,
            worker,
        });
    }

    pub(crate) fn summary_news(&mut self, hot: &mut Hot, news: News) {
        let answer = match news {
            News::Waiting | News::Granted(_) | News::Text(_) => return,
            News::Answered(answer) => Some(answer),
            News::Failed(_) => None,
        };
        let Some(run) = hot.compacting.take() else { return };
        let text = answer.as_ref().map(|answer| {
            let texts = answer.content.iter().filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            });
            texts.collect::<String>()
        });
        let usage = answer.as_ref().map(|answer| answer.usage).or(run.usage);
        let cost_usd = answer.and_then(|answer| answer.cost_usd);
        let told = text.and_then(|text| hot.core.transcript().with_summary(&run.plan, &text));
        let summarised_by = told.is_some().then(|| run.model.clone());
        let plan = ContextCompacted {
            usage,
            cost_usd,
            summarised_by,
            ..told.unwrap_or(run.plan)
        };
        shrunk_to(hot, run.id, Shrunk::Compacted(plan));
        self.run_followers(hot);
    }

    /// Ends the wait for a summary: it takes too long, or the daemon drains.
    pub(crate) fn hurry_summary(&mut self, hot: &mut Hot, of: Option<QuestionId>) {
        let Some(run) = hot.compacting.take_if(|run| of.is_none_or(|of| of == run.id)) else {
            return;
        };
        self.kill(run.worker);
        shrunk_to(hot, run.id, Shrunk::Compacted(run.plan));
        self.run_followers(hot);
    }
}

fn shrunk_to(hot: &mut Hot, id: QuestionId, shrunk: Shrunk) {
    hot.core.answer(id, Answer::Shortened(shrunk));
}
