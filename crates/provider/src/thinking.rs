//! The thinking level: maps the requested level to one that the model accepts.

use crate::spec::ModelSpec;
use agentd_protocol::ThinkingLevel;
use agentd_settings::ThinkingForm;

/// The level to request: the configured one, or the nearest that this model accepts. None: not sent.
pub(crate) fn level(spec: &ModelSpec) -> Option<ThinkingLevel> {
    let wished = spec
        .thinking
        .filter(|_| spec.capabilities.thinking != ThinkingForm::None)?;
    Some(nearest(wished, &spec.capabilities.thinking_levels))
}

/// The nearest accepted level; of two equally near ones, the lower. An empty list accepts all.
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

/// The token budget of a level, for models that take a number.
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

/// The least output limit at which the model thinks as much as it does now; 0: its thinking does not depend on the limit.
#[must_use]
pub fn thinking_tokens(spec: &ModelSpec) -> u64 {
    let within = matches!(
        spec.capabilities.thinking,
        ThinkingForm::Budget | ThinkingForm::Switch
    );
    let budget = level(spec).filter(|_| within).map_or(0, tokens);
    // A quarter of the limit is left for the answer itself.
    let limit = u64::from(budget).saturating_mul(4).div_ceil(3);
    limit.min(spec.max_output.into())
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
