//! What deleted sessions spent. These sums outlive the sessions; their number is limited.

use agentd_protocol::{Labels, Summary, Usage};

/// The maximum number of sums with labels; past it, the labels of new sums are dropped.
const MAX_LABELLED: usize = 5_000;
/// The maximum number of sums; past it, all new models share one sum.
const MAX_SUMS: usize = 6_000;
/// The model name of the shared sum.
const OTHERS: &str = "(others)";

/// What deleted sessions with the same model and labels spent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spending {
    /// Their model.
    pub model: String,
    /// Their labels.
    pub labels: Labels,
    /// The number of sessions.
    pub sessions: u64,
    /// Steps.
    pub steps: u64,
    /// Tokens.
    pub usage: Usage,
    /// US dollars.
    pub cost_usd: f64,
}

impl Spending {
    /// The spending of one session.
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        Self {
            model: summary.model.clone(),
            labels: summary.labels.clone(),
            sessions: 1,
            steps: summary.steps,
            usage: summary.usage,
            cost_usd: summary.cost_usd,
        }
    }

    /// Nothing was spent, so there is nothing to store.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.steps == 0 && self.usage == Usage::default() && self.cost_usd == 0.0
    }

    /// Adds another sum.
    pub(crate) fn add(&mut self, other: &Self) {
        self.sessions = self.sessions.saturating_add(other.sessions);
        self.steps = self.steps.saturating_add(other.steps);
        self.usage = self.usage.plus(other.usage);
        self.cost_usd += other.cost_usd;
    }

    /// The sum to add to when `sums` exist: its own, unless there are too many.
    ///
    /// # Errors
    /// Those of `known`.
    pub fn placed<E>(
        mut self,
        sums: usize,
        mut known: impl FnMut(&Self) -> Result<bool, E>,
    ) -> Result<Self, E> {
        if sums < MAX_LABELLED || known(&self)? {
            return Ok(self);
        }
        self.labels.clear();
        if sums < MAX_SUMS || known(&self)? {
            return Ok(self);
        }
        OTHERS.clone_into(&mut self.model);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn placed(sums: usize, known: &[&str]) -> (String, usize) {
        let spent = Spending {
            model: "m".to_owned(),
            labels: [("run".to_owned(), "1".to_owned())].into(),
            ..Spending::default()
        };
        let name = |spent: &Spending| format!("{}{}", spent.model, spent.labels.len());
        let placed: Result<_, Infallible> =
            spent.placed(sums, |spent| Ok(known.contains(&name(spent).as_str())));
        let Ok(spent) = placed;
        (spent.model, spent.labels.len())
    }

    #[test]
    fn sums_that_are_too_many_lose_their_labels_then_their_model() {
        let m = |labels| ("m".to_owned(), labels);
        assert_eq!(placed(MAX_LABELLED - 1, &[]), m(1));
        assert_eq!(placed(MAX_LABELLED, &[]), m(0));
        assert_eq!(placed(MAX_LABELLED, &["m1"]), m(1));
        assert_eq!(placed(MAX_SUMS - 1, &[]), m(0));
        assert_eq!(placed(MAX_SUMS, &["m0"]), m(0));
        assert_eq!(placed(MAX_SUMS, &["m1"]), m(1));
        assert_eq!(placed(MAX_SUMS, &[]), ("(others)".to_owned(), 0));
    }
}
