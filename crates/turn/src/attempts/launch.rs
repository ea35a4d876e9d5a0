//! Starts an attempt: chooses the model, the credential and the thinking level.

use crate::attempts::outer::Taught;
use crate::draft::Draft;
use crate::durable::Attempt;
use crate::effect::Effect;
use crate::input::ModelFacts;
use crate::tree::shared_budget;
use crate::volatile::Live;
use crate::{
    attempts::cache_lifetime,
    context::{overflow, size},
    lifecycle,
    steps::{ending, limits},
};
use agentd_protocol::{EndReason, ModelStarted, SessionId, ThinkingLevel};

/// Starts an attempt: the first of a new call, or the one after `last`. False: it is running, nothing more to do.
pub(crate) fn launch(draft: &mut Draft<'_, '_>, last: Option<Attempt>, tools_off: bool) -> bool {
    let name = model(draft, last.as_ref());
    let facts = match (draft.scene.models)(&name) {
        Ok(facts) => facts,
        Err(error) => {
            ending::finish(draft, EndReason::InitializationFailed, Some(error));
            return true;
        }
    };
    let steps = draft.turn().map_or(0, |turn| turn.steps);
    let taught = draft.durable().outer.taught_of(&name);
    let cache_hour = cache_lifetime::hour(draft, last.as_ref(), &name, &facts, &taught);
    let (call, attempt, step) = match last {
        Some(last) => (last.call, last.attempt.saturating_add(1), last.step),
        None => (draft.stamp().call(), 1, steps.saturating_add(1)),
    };
    let thinking = thinking(draft, &taught, &facts);
    let credential = credential(draft, &facts);
    let inputs = lifecycle::join(draft);
    let input_tokens_estimate = size::size_with(draft, &inputs);
    let started = ModelStarted {
        call,
        attempt,
        step,
        max_steps: limits::max_steps(draft.durable()),
        inputs,
        provider: facts.provider,
        model: facts.model,
        credential: credential.clone(),
        input_tokens_estimate,
        tools_off,
        configured: Some(name.clone()),
        thinking,
        cache_hour,
    };
    draft.emit(started);
    let left_out = draft.durable().outer.taught_of(&name).left_out;
    let (window, prefix) = (overflow::told(draft, &name), draft.scene.prefix);
    shared_budget::forget(draft);
    let volatile = draft.volatile();
    volatile.launched();
    let insists = std::mem::take(&mut volatile.insists);
    volatile.sent_prefix = Some(prefix ^ left_out.id());
    volatile.live = Some(Live::of(call, attempt));
    draft.effect(Effect::StartModel {
        call,
        attempt,
        model: name,
        tools_off,
        credential,
        thinking,
        without: taught.without.into_iter().collect(),
        left_out: left_out.items.into_iter().collect(),
        window,
        insists,
        cache_hour,
    });
    false
}

/// The model of the attempt: a call continues with the model that it last reached, a new call starts with the session's
/// own or its current stand-in. A model that a person has chosen since takes precedence.
pub(crate) fn model(draft: &Draft<'_, '_>, last: Option<&Attempt>) -> String {
    let own = draft.durable().model();
    let other = match last {
        Some(last) if last.tries.own == own => Some(last.model.as_str()),
        Some(_) => None,
        None => draft.durable().outer.stand_in(own, draft.now()),
    };
    other
        .filter(|name| (draft.scene.models)(name).is_ok())
        .unwrap_or(own)
        .to_owned()
}

/// How hard the model is to think: what its server accepts, the session's setting, or the model's.
pub(crate) fn thinking(draft: &Draft<'_, '_>, taught: &Taught, facts: &ModelFacts) -> Option<ThinkingLevel> {
    let session = draft.durable().limits().thinking;
    taught.thinking.or(session).or(facts.thinking)
}

/// The credential that the session last used with this provider; new sessions are spread over all credentials.
pub(crate) fn credential(draft: &Draft<'_, '_>, facts: &ModelFacts) -> Option<String> {
    let durable = draft.durable();
    let pinned = durable.outer.pins.get(&facts.provider);
    let pinned = pinned.filter(|name| facts.credentials.contains(name));
    pinned
        .or_else(|| {
            let count = u64::try_from(facts.credentials.len()).ok()?;
            let nth = spread(durable.session).checked_rem(count)?;
            facts.credentials.get(usize::try_from(nth).ok()?)
        })
        .cloned()
}

/// A hash that is stable per session and spreads sessions evenly (FNV-1a).
fn spread(session: SessionId) -> u64 {
    session
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
}
