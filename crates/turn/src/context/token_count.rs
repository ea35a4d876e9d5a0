//! Exact token counting: if the estimate is close to the limit at which a conversation is made shorter, the provider
//! counts. If it does not answer, the estimate stands.

use crate::attempts::launch;
use crate::context::ContextRules;
use crate::draft::Draft;
use crate::questions::{self, Question};

/// Requests a count if it could change what follows. True: the next call waits for it.
pub(crate) fn comes_first(draft: &mut Draft<'_, '_>, model: &str, tokens: u64, line: u64) -> bool {
    let rules = draft.config().context;
    let (messages, steps) = (draft.scene.sizes.messages, draft.durable().totals.steps);
    if !is_close(&rules, tokens, line) || !draft.seen().preparing.may_count(messages, steps) {
        return false;
    }
    let Some(facts) = (draft.scene.models)(model).ok().filter(|facts| facts.counts) else {
        return false;
    };
    let credential = launch::credential(draft, &facts);
    let taught = draft.durable().outer.taught_of(model);
    draft.volatile().preparing.counted(messages, steps);
    let question = Question::TokenCount {
        model: model.to_owned(),
        credential,
        without: taught.without.into_iter().collect(),
        within_ms: rules.count_ms,
    };
    questions::ask(draft, question);
    true
}

fn is_close(rules: &ContextRules, tokens: u64, line: u64) -> bool {
    let margin = line.saturating_mul(rules.count_margin_permille) / 1_000;
    margin > 0 && tokens.abs_diff(line) <= margin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_close_to_the_line_is_counted() {
        let rules = ContextRules::default();
        for (tokens, expected) in [(899, false), (900, true), (1_100, true), (1_101, false)] {
            assert_eq!(is_close(&rules, tokens, 1_000), expected, "{tokens}");
        }
        let never = ContextRules {
            count_margin_permille: 0,
            ..rules
        };
        assert!(!is_close(&never, 1_000, 1_000));
    }
}
