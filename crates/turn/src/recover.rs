//! Recovery after a restart: close what is dangling, repeat what may be repeated, continue the turn.

use crate::calls::open_call::{Stage, Started};
use crate::draft::Draft;
use crate::durable::Phase;
use crate::{
    calls::{self, jobs},
    history,
    tree::{delegate, following},
    words,
};
use agentd_protocol::{
    JobLost, Recovered, SessionRecovered, ToolCallId, ToolFinished, ToolOutcome, ToolStatus,
};

/// Records what was in flight, and closes or repeats it. Writes nothing if nothing was in flight.
pub(crate) fn recover(draft: &mut Draft<'_, '_>) {
    delegate::recover(draft);
    if draft.durable().paused_with_parent {
        following::look(draft);
    }
    let lost_attempt = lost_attempt(draft);
    let dangling = dangling(draft);
    let lost_jobs = jobs::lost(draft);
    let history = history::lost(draft);
    if lost_attempt.is_none() && dangling.is_empty() && lost_jobs.is_empty() && history.is_none() {
        return;
    }
    let history = history.map(|seq| recovered("history", seq.to_string(), "run_again"));
    let mut closed: Vec<Recovered> = lost_attempt.into_iter().chain(history).collect();
    closed.extend(dangling.iter().map(|(id, started)| {
        recovered(
            "tool_call",
            id.to_string(),
            if started.idempotent {
                "run_again"
            } else {
                "interrupted"
            },
        )
    }));
    let kept = draft.durable().approvals.iter();
    closed.extend(kept.map(|open| recovered("approval", open.approval.to_string(), "kept")));
    let jobs = lost_jobs.iter();
    closed.extend(jobs.map(|job| recovered("job", job.to_string(), "lost")));
    draft.emit(SessionRecovered { closed });
    // A session that is here only to end its work has no files here.
    let starts = !draft.seen().draining;
    if starts {
        history::again(draft);
    }
    for job in lost_jobs {
        let reason = words::JOB_LOST.to_owned();
        draft.emit(JobLost { job, reason });
    }
    for (tool_call, started) in dangling {
        if started.idempotent && starts {
            calls::run(draft, tool_call, started.effect, started.sandbox);
        } else {
            let mut outcome = ToolOutcome::text(ToolStatus::Interrupted, words::OUTCOME_UNKNOWN);
            outcome.outcome_unknown = true;
            outcome.duration_ms = draft.now().since_ms(started.at);
            draft.emit(ToolFinished { tool_call, outcome });
        }
    }
}

fn lost_attempt(draft: &Draft<'_, '_>) -> Option<Recovered> {
    let runs = draft.seen().live.is_some() || draft.seen().answer.is_some();
    match &draft.turn()?.phase {
        Phase::Streaming(current) if !runs => {
            Some(recovered("model_call", current.call.to_string(), "retried"))
        }
        Phase::Streaming(_)
        | Phase::Ready
        | Phase::BackingOff { .. }
        | Phase::GaveUp { .. }
        | Phase::Calling { .. }
        | Phase::Answered { .. }
        | Phase::AtLimit(_) => None,
    }
}

/// Calls that have started, have no result, and are not running here.
fn dangling(draft: &Draft<'_, '_>) -> Vec<(ToolCallId, Started)> {
    let open = draft.durable().open_calls().filter(|call| {
        !draft.seen().running.contains(&call.id) && !delegate::is_child(draft.durable(), call)
    });
    open.filter_map(|call| match &call.stage {
        Stage::Running(started) => Some((call.id, started.clone())),
        Stage::Named
        | Stage::Proposed
        | Stage::ToAsk
        | Stage::Asking(_)
        | Stage::Allowed
        | Stage::Denied(_)
        | Stage::Answered(_)
        | Stage::Closed(_) => None,
    })
    .collect()
}

fn recovered(what: &str, id: String, how: &str) -> Recovered {
    Recovered {
        what: what.to_owned(),
        id,
        how: how.to_owned(),
    }
}
