//! Timers follow from the state: after each step, missing ones are set and those without a cause are cleared.

use crate::draft::Draft;
use crate::durable::Phase;
use crate::effect::Effect;
use crate::input::TimerKey;
use crate::{
    calls::approvals,
    context::overflow,
    questions::{self, Question, Subject},
};

/// Handles a timer that fired; ignored if it has been replaced or cleared since.
pub(crate) fn fired(draft: &mut Draft<'_, '_>, key: TimerKey, generation: u64) {
    let volatile = draft.volatile();
    if volatile.timers.get(&key) != Some(&generation) {
        return;
    }
    volatile.timers.remove(&key);
    match key {
        TimerKey::Backoff => volatile.backoff_over = true,
        TimerKey::Questions => questions::overdue(draft),
        TimerKey::Expiry(approval) => approvals::expire(draft, approval),
        TimerKey::Unattended(approval) => {
            questions::ask(draft, Question::Deciders { approval });
        }
    }
}

/// Sets or replaces a timer.
pub(crate) fn set(draft: &mut Draft<'_, '_>, key: TimerKey, after_ms: u64) {
    let volatile = draft.volatile();
    volatile.generation = volatile.generation.wrapping_add(1);
    let generation = volatile.generation;
    volatile.timers.insert(key, generation);
    draft.effect(Effect::SetTimer {
        key,
        generation,
        after_ms,
    });
}

/// Sets and clears timers to match the state.
pub(crate) fn reconcile(draft: &mut Draft<'_, '_>) {
    let wanted = wanted(draft);
    let causeless: Vec<TimerKey> = draft
        .seen()
        .timers
        .keys()
        .filter(|key| !wanted.iter().any(|(other, _)| other == *key))
        .copied()
        .collect();
    for key in causeless {
        draft.volatile().timers.remove(&key);
        draft.effect(Effect::ClearTimer { key });
    }
    for (key, after_ms) in wanted {
        if !draft.seen().timers.contains_key(&key) {
            if key == TimerKey::Questions {
                questions::watch(draft, draft.now().plus_ms(after_ms));
            }
            set(draft, key, after_ms);
        }
    }
}

fn wanted(draft: &Draft<'_, '_>) -> Vec<(TimerKey, u64)> {
    let (durable, volatile, now) = (draft.durable(), draft.seen(), draft.now());
    let mut wanted = Vec::new();
    if let Some(deadline) = volatile.questions.next_deadline() {
        wanted.push((TimerKey::Questions, deadline.since_ms(now)));
    }
    if volatile.draining {
        // The next incarnation sets the others again; a drained session must come to rest.
        return wanted;
    }
    if let Some(Phase::BackingOff { retry_at, remedy, .. }) = draft.turn().map(|turn| &turn.phase)
        && overflow::how(remedy.as_ref()).is_none()
        && !draft.held()
        && !volatile.backoff_over
    {
        wanted.push((TimerKey::Backoff, retry_at.since_ms(now)));
    }
    let unattended = durable.limits().unattended_ms;
    for open in &durable.approvals {
        if let Some(expires_at) = open.expires_at {
            wanted.push((TimerKey::Expiry(open.approval), expires_at.since_ms(now)));
        }
        if let Some(ms) =
            unattended.filter(|_| !volatile.questions.is_pending(&Subject::Deciders(open.approval)))
        {
            let key = TimerKey::Unattended(open.approval);
            wanted.push((key, open.asked_at.plus_ms(ms).since_ms(now)));
        }
    }
    wanted
}
