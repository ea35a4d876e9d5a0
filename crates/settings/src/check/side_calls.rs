//! Checks side calls and token counting.

use super::Check;
use crate::side_calls::OWN;

impl Check<'_> {
    pub(super) fn side_calls(&mut self) {
        let side = self.settings().side_calls.clone();
        if !side.model.is_empty() && side.model != OWN {
            self.named("side_calls.model", &side.model, "models", false);
        }
        let below = side.intent_below;
        self.share(
            "side_calls.intent_below",
            below,
            "not a confidence",
            "give a number such as 0.8",
        );
        let margin = self.settings().context.count_margin;
        self.share(
            "context.count_margin",
            margin,
            "not a share of the compaction limit",
            "give a share such as 0.1, or 0.0 for never",
        );
    }

    fn share(&mut self, key: &str, share: f64, what: &str, fix: &str) {
        let good = (0.0..=1.0).contains(&share);
        self.require(good, key, &format!("{share} is {what}"), fix);
    }
}
