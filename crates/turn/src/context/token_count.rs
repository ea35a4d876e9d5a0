//! Exact token counting: if the estimate is close to the limit at which a conversation is made shorter, the provider
//! counts. If it does not answer, the estimate stands.

use crate::attempts::launch;
use crate::context::ContextRules;
use crate::draft::Draft;
use crate::effect::Effect;
use agentd_protocol::CallId;

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
    let call = draft.stamp().call();
    let (credential, taught) = (
        launch::credential(draft, &facts),
        draft.durable().outer.taught_of(model),
    );
    let volatile = draft.volatile();
    volatile.token_count = Some(call);
    volatile.preparing.counted(messages, steps);
    draft.effect(Effect::CountTokens {
        call,
        model: model.to_owned(),
        credential,
        without: taught.without.into_iter().collect(),
        within_ms: rules.count_ms,
    });
    true
}

fn is_close(rules: &ContextRules, tokens: u64, line: u64) -> bool {
    let margin = line.saturating_mul(rules.count_margin_permille) / 1_000;
    margin > 0 && tokens.abs_diff(line) <= margin
}

/// Continues after the count, or without one: decisions use the resulting estimate.
pub(crate) fn counted(draft: &mut Draft<'_, '_>, call: CallId) {
    let volatile = draft.volatile();
    if volatile.token_count == Some(call) {
        volatile.token_count = None;
    }
}

/// Abandons a count that is no longer needed.
pub(crate) fn stop(draft: &mut Draft<'_, '_>) {
    if let Some(call) = draft.volatile().token_count.take() {
        draft.effect(Effect::DropCount { call });
    }
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
