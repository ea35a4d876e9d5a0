//! Calibrates the token estimate: each answer reports how many tokens the provider counted for what we had estimated.

use std::collections::BTreeMap;

/// The fewest estimated tokens between two answers from which a rate is derived.
const ENOUGH: u64 = 500;
/// The largest plausible factor between estimate and count; anything beyond measures something else.
const FACTOR: u64 = 4;
/// The factor 1 in the unit of the rates.
const ONE: u64 = 1_000;
/// The most models whose rates are kept.
const REMEMBERED: usize = 16;

/// The tokens that providers counted per thousand estimated ones, by model.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Rates {
    rates: BTreeMap<String, u64>,
    model: String,
    /// The provider's count up to the last answer, and our estimate of what was added since.
    base: Option<(u64, u64)>,
}

impl Rates {
    /// Selects the model of the next answer.
    pub(crate) fn asks(&mut self, model: &str) {
        if self.model != model {
            model.clone_into(&mut self.model);
            self.base = None;
        }
    }

    /// Converts an estimate to the expected count of this model's provider.
    pub(crate) fn of(&self, guess: u64) -> u64 {
        let rate = self.rates.get(&self.model).copied().unwrap_or(ONE);
        let counted = u128::from(guess).saturating_mul(u128::from(rate)) / u128::from(ONE);
        u64::try_from(counted).unwrap_or(u64::MAX)
    }

    /// Adds the estimated tokens of new messages.
    pub(crate) fn added(&mut self, guess: u64) {
        if let Some((_, since)) = &mut self.base {
            *since = since.saturating_add(guess);
        }
    }

    /// Drops the base, because sealed messages have changed.
    pub(crate) fn lose_base(&mut self) {
        self.base = None;
    }

    /// Learns from the provider's count of a request and its answer.
    pub(crate) fn counted(&mut self, prompt: u64, output: u64) {
        if let Some((before, guess)) = self.base
            && guess >= ENOUGH
            && prompt > before
        {
            let told = (prompt - before).saturating_mul(ONE) / guess;
            let told = told.clamp(ONE / FACTOR, ONE * FACTOR);
            if !self.rates.contains_key(&self.model) && self.rates.len() >= REMEMBERED {
                self.rates.pop_first();
            }
            let rate = self.rates.entry(self.model.clone()).or_insert(told);
            *rate = (*rate * 3 + told) / 4;
        }
        self.base = Some((prompt.saturating_add(output), 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_calibrated_per_model() {
        let mut rates = Rates::default();
        rates.asks("m");
        rates.counted(5_000, 100);
        rates.added(1_000);
        assert_eq!(rates.of(1_000), 1_000, "nothing is known yet");
        rates.counted(7_100, 50);
        assert_eq!(rates.of(1_000), 2_000);
        rates.added(1_000);
        rates.counted(8_150, 0);
        assert_eq!(rates.of(1_000), 1_750, "one answer does not change it all");
        rates.asks("other");
        assert_eq!(rates.of(1_000), 1_000);
    }

    #[test]
    fn implausible_counts_are_ignored() {
        let mut rates = Rates::default();
        rates.counted(100, 0);
        rates.added(499);
        rates.counted(1_000_000, 0);
        assert_eq!(rates.of(1_000), 1_000, "too little to learn from");
        rates.added(500);
        rates.counted(2_000_000, 0);
        assert_eq!(rates.of(1_000), 4_000);
        rates.added(600);
        rates.lose_base();
        rates.counted(10, 0);
        assert_eq!(rates.of(1_000), 4_000, "another conversation");
    }
}
