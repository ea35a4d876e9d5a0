//! How hard a model is asked to think: the wish, mended to what the model takes.

use crate::spec::ModelSpec;
use agentd_protocol::ThinkingLevel;
use agentd_settings::ThinkingForm;

/// The level to ask for: the one wished, or the nearest that this model takes. None: nothing is said.
pub(crate) fn level(spec: &ModelSpec) -> Option<ThinkingLevel> {
    let wished = spec
        .thinking
        .filter(|_| spec.capabilities.thinking != ThinkingForm::None)?;
    Some(nearest(wished, &spec.capabilities.thinking_levels))
}

/// The nearest of the levels that are taken; of two that are equally near the smaller. No list: all are taken.
fn nearest(wished: ThinkingLevel, taken: &[ThinkingLevel]) -> ThinkingLevel {
    let place = |level: ThinkingLevel| {
        ThinkingLevel::ALL
            .iter()
            .position(|one| *one == level)
            .unwrap_or(0)
    };
    taken
        .iter()
        .copied()
        .min_by_key(|level| (place(*level).abs_diff(place(wished)), *level))
        .unwrap_or(wished)
}

/// The tokens that a level stands for where thinking is asked for by a number.
pub(crate) const fn tokens(level: ThinkingLevel) -> u32 {
    match level {
        ThinkingLevel::Off => 0,
        ThinkingLevel::Minimal => 1_024,
        ThinkingLevel::Low => 4_096,
        ThinkingLevel::Medium => 8_192,
        ThinkingLevel::High => 16_384,
        ThinkingLevel::Max => 32_768,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off};

    #[test]
    fn a_level_that_is_not_taken_becomes_the_nearest() {
        assert_eq!(nearest(Max, &[Low, Medium, High]), High);
        assert_eq!(nearest(Off, &[Minimal, High]), Minimal);
        assert_eq!(nearest(Medium, &[Low, High]), Low);
        assert_eq!(nearest(Medium, &[Off, Medium]), Medium);
        assert_eq!(nearest(Minimal, &[]), Minimal);
    }
}
