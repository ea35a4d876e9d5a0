//! Remembers for each model whether its server counts tokens on request. Pure.

use agentd_provider::Counted;
use std::collections::BTreeMap;

/// After this many failures in a row, a server is not asked again.
const TRIES: u32 = 3;
/// The most models remembered.
const REMEMBERED: usize = 256;

/// Consecutive failures, by the provider's name of the model.
#[derive(Debug, Default)]
pub(crate) struct Counts(BTreeMap<String, u32>);

impl Counts {
    /// Whether asking can succeed.
    pub(crate) fn may_ask(&self, model: &str) -> bool {
        self.0.get(model).is_none_or(|failures| *failures < TRIES)
    }

    /// Records the outcome of a count.
    pub(crate) fn note(&mut self, model: String, counted: Counted) {
        let failures = match counted {
            Counted::Tokens(_) => {
                self.0.remove(&model);
                return;
            }
            Counted::Never => TRIES,
            Counted::Failed => self.0.get(&model).copied().unwrap_or(0).saturating_add(1),
        };
        if self.0.len() < REMEMBERED || self.0.contains_key(&model) {
            self.0.insert(model, failures);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_count_is_never_asked_again_and_who_fails_three_times() {
        let mut counts = Counts::default();
        assert!(counts.may_ask("m"));
        counts.note("m".into(), Counted::Never);
        assert!(!counts.may_ask("m") && counts.may_ask("other"));
        for _ in 0..2 {
            counts.note("slow".into(), Counted::Failed);
        }
        assert!(counts.may_ask("slow"));
        counts.note("slow".into(), Counted::Tokens(7));
        for _ in 0..3 {
            assert!(counts.may_ask("slow"), "an answer makes up for it");
            counts.note("slow".into(), Counted::Failed);
        }
        assert!(!counts.may_ask("slow"));
    }
}
