//! A sub-agent follows its parent's state: a stricter mode, a pause, the end of the pause. The parent's row is
//! authoritative. A sub-agent checks it before each step and when its parent announces a change; one that missed the
//! announcement notices before its next step at the latest.

use crate::draft::Draft;
use crate::effect::Effect;
use crate::tree::shared_budget::Above;
use crate::{
    tree::{completion_report, shared_budget},
    words,
};
use agentd_protocol::{Event, EventBody, SessionId, SessionPaused, SessionResumed, SessionUpdated};

/// A change in this step concerns the sub-agents: each of them must check.
pub(crate) fn lead(draft: &mut Draft<'_, '_>) {
    if !draft.happened().iter().any(concerns_those_below) {
        return;
    }
    let children: Vec<SessionId> = draft.durable().children.keys().copied().collect();
    for child in children {
        draft.effect(Effect::Lead { child });
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "nothing else holds for others, too"
)]
fn concerns_those_below(event: &Event) -> bool {
    match &event.body {
        EventBody::SessionPaused(_) | EventBody::SessionResumed(_) | EventBody::ModeChanged(_) => true,
        EventBody::SessionUpdated(updated) => updated.mode.is_some(),
        _ => false,
    }
}

/// Handles the parent's announcement of a change.
pub(crate) fn look(draft: &mut Draft<'_, '_>) {
    let durable = draft.durable();
    if durable.closed.is_none() && durable.lineage().is_some() && !completion_report::has_ended(durable) {
        shared_budget::ask(draft);
    }
}

/// No parent waits any more, so none ends the pause: the session goes on, and ends before its next step.
pub(crate) fn let_go(draft: &mut Draft<'_, '_>) {
    if draft.durable().paused_with_parent && draft.durable().closed.is_none() {
        let reason = words::NOT_WANTED.to_owned();
        draft.emit(SessionResumed { reason });
    }
}

/// Follows the parent's state. A looser mode is never inherited (I7), and a pause of this session alone stays.
pub(crate) fn follow(draft: &mut Draft<'_, '_>, above: Option<Above>) {
    let Some(Above { mode, paused }) = above else {
        return;
    };
    if draft.durable().closed.is_some() {
        return;
    }
    let own = draft.durable().mode();
    let stricter = own.stricter(mode);
    if stricter != own {
        draft.emit(SessionUpdated {
            title: None,
            model: None,
            mode: Some(stricter),
            labels: None,
            budget: None,
            summary: None,
        });
    }
    if paused && draft.durable().paused.is_none() {
        let reason = words::PAUSED_WITH_PARENT.to_owned();
        draft.emit(SessionPaused { reason });
    } else if !paused && draft.durable().paused_with_parent {
        let reason = words::RESUMED_WITH_PARENT.to_owned();
        draft.emit(SessionResumed { reason });
    }
}
