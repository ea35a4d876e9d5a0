//! The child's side of a sub-agent: once nothing is left to do, it reports its end to the parent, and closes when the
//! parent has recorded the report.

use crate::draft::Draft;
use crate::durable::Durable;
use crate::effect::{Effect, Reply};
use crate::inbox;
use crate::questions::{self, Question, Subject};
use crate::tree::delegate::Ended;
use agentd_protocol::{EventBody, Fault, Timestamp};

/// Why a child closes itself.
const DELIVERED: &str = "its task is over and the result was delivered";

/// Reports to the parent if nothing is left to do here.
pub(crate) fn tell(draft: &mut Draft<'_, '_>) {
    notify_root(draft);
    if !has_ended(draft.durable()) || draft.seen().reports_later() {
        return;
    }
    match draft.seen().reported {
        None if !draft.seen().questions.is_pending(&Subject::Report) => {
            let Some((parent, _)) = draft.durable().lineage() else {
                return;
            };
            let ended = Box::new(outcome(draft.durable(), draft.now()));
            questions::ask(draft, Question::Report { parent, ended });
        }
        Some(true) if draft.durable().closed.is_none() => {
            // Nothing runs and no input waits, so only open work on files can make this fail.
            drop(inbox::close(draft, DELIVERED.to_owned(), false));
        }
        // It is on its way, or the parent was unreachable: the next incarnation tries again.
        None | Some(_) => {}
    }
}

/// Handles the outcome of the report: the parent has it or does not want it, or is unreachable.
pub(crate) fn delivered(draft: &mut Draft<'_, '_>, settled: bool) {
    draft.volatile().reported = Some(settled);
}

/// The parent asks again for the report.
pub(crate) fn asked(draft: &mut Draft<'_, '_>) -> Result<Reply, Fault> {
    draft.volatile().reported = None;
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
