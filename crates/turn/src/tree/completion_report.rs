//! The child's side of a sub-agent: once nothing is left to do, it reports its end to the parent, and closes when the
//! parent has recorded the report.

use crate::draft::Draft;
use crate::durable::Durable;
use crate::effect::{Effect, Reply};
use crate::inbox;
use crate::tree::delegate::Ended;
use agentd_protocol::{EventBody, Fault, Timestamp};

/// The state of the report to the parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReportState {
    /// Not sent.
    #[default]
    Not,
    /// The report is on its way.
    Sent,
    /// The parent has it, or does not want it.
    Heard,
    /// The parent was unreachable; the next incarnation tries again.
    Failed,
}

/// Why a child closes itself.
const DELIVERED: &str = "its task is over and the result was delivered";

/// Reports to the parent if nothing is left to do here.
pub(crate) fn tell(draft: &mut Draft<'_, '_>) {
    notify_root(draft);
    if !has_ended(draft.durable()) || draft.seen().draining {
        return;
    }
    match draft.seen().report {
        ReportState::Not => {
            let Some((parent, _)) = draft.durable().lineage() else {
                return;
            };
            let ended = Box::new(outcome(draft.durable(), draft.now()));
            draft.volatile().report = ReportState::Sent;
            draft.effect(Effect::TellParent { parent, ended });
        }
        ReportState::Heard if draft.durable().closed.is_none() => {
            // Nothing runs and no input waits, so only open work on files can make this fail.
            drop(inbox::close(draft, DELIVERED.to_owned(), false));
        }
        ReportState::Heard | ReportState::Sent | ReportState::Failed => {}
    }
}

/// Handles the outcome of the report: the parent has it, or is unreachable.
pub(crate) fn told(draft: &mut Draft<'_, '_>, heard: bool) {
    if draft.seen().report == ReportState::Sent {
        draft.volatile().report = if heard {
            ReportState::Heard
        } else {
            ReportState::Failed
        };
    }
}

/// The parent asks again for the report.
pub(crate) fn asked(draft: &mut Draft<'_, '_>) -> Result<Reply, Fault> {
    if draft.seen().report != ReportState::Sent {
        draft.volatile().report = ReportState::Not;
    }
    Ok(Reply::Done { seq: 0 })
}

/// Whether this is a sub-agent with nothing left to do, in itself or below.
pub(crate) fn has_ended(durable: &Durable) -> bool {
    let rests = durable.turn.is_none() && durable.children.is_empty();
    let idle =
        inbox::starts_next(durable).is_empty() && durable.history.is_none() && !durable.compaction_is_due();
    durable.lineage().is_some() && rests && (idle || durable.closed.is_some())
}

/// Whether the parent may not know yet that it ended.
pub(crate) fn owes(durable: &Durable) -> bool {
    has_ended(durable) && durable.closed.is_none()
}

fn outcome(durable: &Durable, now: Timestamp) -> Ended {
    let closed = durable.closed.as_ref().map(|closed| closed.reason.clone());
    let last = durable.last.as_ref();
    let error = last.and_then(|last| last.error.clone());
    let error = error.or_else(|| closed.map(|reason| crate::steps::limits::error("closed", reason)));
    Ended {
        reason: last.map(|last| last.reason),
        text: durable.last_words.clone(),
        error,
        spent: durable.spent(now).and(durable.below),
    }
}

/// Tells viewers of the root about open approvals below it.
fn notify_root(draft: &mut Draft<'_, '_>) {
    if draft.durable().lineage().is_none() {
        return;
    }
    let about = |event: &agentd_protocol::Event| {
        matches!(
            event.body,
            EventBody::ApprovalAsked(_) | EventBody::ApprovalDecided(_)
        )
    };
    if draft.happened().iter().any(about) {
        draft.effect(Effect::TellRoot);
    }
}
