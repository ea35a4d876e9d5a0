//! The settings that a client has read and wants to change.

use crate::durable::Durable;
use agentd_protocol::{Budget, Labels, PermissionMode, Summary};
use serde::Serialize;

/// What `session.update` can change. An update that expects these settings is refused if the session has others by now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownSettings {
    title: String,
    model: String,
    mode: PermissionMode,
    labels: Labels,
    budget: Budget,
}

impl From<&Summary> for ShownSettings {
    fn from(shown: &Summary) -> Self {
        Self {
            title: shown.name.clone(),
            model: shown.model.clone(),
            mode: shown.mode,
            labels: shown.labels.clone(),
            budget: shown.budget,
        }
    }
}

impl ShownSettings {
    /// Whether the session still has these settings.
    pub(crate) fn hold(&self, durable: &Durable) -> bool {
        durable.settings.as_ref().is_some_and(|now| {
            self.title == now.title
                && self.model == now.model
                && self.mode == now.mode
                && self.labels == now.labels
                && same(&self.budget, &now.budget)
        })
    }
}

/// Amounts that went through JSON differ in the last digit.
fn same(one: &Budget, other: &Budget) -> bool {
    let usd = (one.usd - other.usd).abs() <= 1e-9 * one.usd.abs();
    let others = |budget: &Budget| (budget.tokens, budget.time_ms, budget.steps);
    usd && others(one) == others(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_the_same_but_for_the_rounding_of_its_dollars() {
        let budget = |usd, steps| Budget {
            usd,
            steps,
            ..Budget::default()
        };
        assert!(same(&budget(0.3, 2), &budget(0.1 + 0.2, 2)));
        assert!(same(&Budget::default(), &Budget::default()));
        assert!(!same(&budget(0.3, 2), &budget(0.300_001, 2)));
        assert!(!same(&budget(0.0, 2), &budget(0.000_001, 2)));
        assert!(!same(&budget(0.3, 2), &budget(0.3, 3)));
    }
}
