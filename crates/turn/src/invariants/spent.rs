//! Checks what a session spends against its budget: no step may begin without room in the budget.

use super::{Held, Violation};
use agentd_protocol::{Budget, CallId, EventBody, ModelStarted, Usage};

/// The totals, as far as the log has them.
#[derive(Debug, Clone, Default)]
pub(super) struct Spent {
    budget: Budget,
    usage: Usage,
    cost_usd: f64,
    steps: u64,
    /// The model call of the last step.
    call: Option<CallId>,
    /// A summary was charged since the last attempt: it was started while there was room.
    summary: bool,
}

impl Spent {
    #[expect(clippy::wildcard_enum_match_arm, reason = "most events cost nothing")]
    pub(super) fn see(&mut self, body: &EventBody) {
        match body {
            EventBody::SessionCreated(created) => self.budget = created.budget,
            EventBody::SessionUpdated(updated) => self.budget = updated.budget.unwrap_or(self.budget),
            EventBody::SessionForked(_) => {
                let (budget, call) = (self.budget, self.call);
                *self = Self {
                    budget,
                    call,
                    ..Self::default()
                };
            }
            EventBody::ModelFinished(finished) => self.add(Some(finished.usage), finished.cost_usd),
            EventBody::ModelFailed(failed) => self.add(failed.usage, failed.cost_usd),
            EventBody::ContextCompacted(compacted) => {
                self.add(compacted.usage, compacted.cost_usd);
                self.summary = true;
            }
            _ => {}
        }
    }

    fn add(&mut self, usage: Option<Usage>, cost_usd: Option<f64>) {
        self.usage = self.usage.plus(usage.unwrap_or_default());
        self.cost_usd += cost_usd.unwrap_or_default();
    }

    /// The step that uses up a budget may exceed it; no later step may start.
    pub(super) fn may_ask(&mut self, started: &ModelStarted) -> Held {
        let fresh = self.call != Some(started.call);
        let after_summary = std::mem::take(&mut self.summary);
        let Budget {
            tokens, usd, steps, ..
        } = self.budget;
        let over = |what: &str| {
            Err(Violation::of(
                "budget",
                format!("a step began without {what} left"),
            ))
        };
        if steps > 0 && fresh && self.steps >= steps {
            return over("steps");
        }
        if tokens > 0 && self.usage.total() >= tokens && !after_summary {
            return over("tokens");
        }
        if usd > 0.0 && self.cost_usd >= usd && !after_summary {
            return over("money");
        }
        if fresh {
            self.steps = self.steps.saturating_add(1);
            self.call = Some(started.call);
        }
        Ok(())
    }
}
