//! How turns end: by themselves, because the model call failed for good, or because a person cancelled them.

use crate::calls::open_call::Stage;
use crate::draft::Draft;
use crate::durable::Phase;
use crate::effect::Effect;
use crate::questions::{self, Subject};
use crate::steps::guards::STUTTER;
use crate::{
    attempts::{self, remedy},
    calls::{self, approvals, judging},
    checkpoints,
    context::{self, overflow},
    steps::limits,
    tree::delegate,
    words,
};
use agentd_protocol::{
    ApprovalId, EndReason, FailureClass, ModelFailed, ToolFinished, ToolOutcome, ToolStatus, TurnError,
    TurnFinished,
};

/// Ends a turn that has no open calls.
pub(crate) fn finish(draft: &mut Draft<'_, '_>, reason: EndReason, error: Option<TurnError>) {
    checkpoints::record(draft);
    if let Some(finished) = finished(draft, reason, error) {
        draft.emit(finished);
        forget_turn(draft);
    }
}

/// Ends a turn in any phase: kills everything that runs and closes everything that is open.
pub(crate) fn cancel(draft: &mut Draft<'_, '_>, reason: Option<String>) {
    stop_model(draft);
    context::stop(draft, "the turn was cancelled");
    close_calls(draft, words::CANCELLED);
    let open: Vec<ApprovalId> = draft
        .durable()
        .approvals
        .iter()
        .map(|open| open.approval)
        .collect();
    for approval in open {
        approvals::withdraw(draft, approval);
    }
    let error = reason.map(|reason| limits::error("cancelled", reason));
    checkpoints::record(draft);
    if let Some(finished) = finished(draft, EndReason::Cancelled, error) {
        draft.emit_by_caller(finished);
        forget_turn(draft);
    }
}

/// Nothing that was asked or prepared for the turn is needed any more.
fn forget_turn(draft: &mut Draft<'_, '_>) {
    questions::turn_ended(draft);
    draft.volatile().forget_turn();
}

/// Ends the turn after a model call that failed for good. True: there may be more to do.
pub(crate) fn give_up(draft: &mut Draft<'_, '_>) -> bool {
    let Some(Phase::GaveUp {
        model,
        class,
        message,
    }) = draft.turn().map(|turn| turn.phase.clone())
    else {
        return false;
    };
    if message == STUTTER {
        let error = limits::error("loop_detected", message);
        finish(draft, EndReason::LoopDetected, Some(error));
        return true;
    }
    let row = remedy::row(class);
    let text = match class {
        FailureClass::ContextOverflow => overflow::explained(draft, &model, &message),
        _ => format!("{message} ({})", row.fix),
    };
    let error = Some(limits::error(row.name, text)).filter(|_| row.end != EndReason::Cancelled);
    finish(draft, row.end, error);
    true
}

/// Gives every open call its one result, so that no request ever carries an unanswered call (I3).
pub(crate) fn close_calls(draft: &mut Draft<'_, '_>, why: &str) {
    judging::propose_all(draft);
    let open: Vec<_> = draft
        .durable()
        .open_calls()
        .map(|call| (call.id, call.stage.clone()))
        .collect();
    for (tool_call, stage) in open {
        let mut duration_ms = 0;
        let (status, text) = match stage {
            Stage::Denied(text) => (ToolStatus::Denied, text),
            Stage::Answered(text) => (ToolStatus::Ok, text),
            Stage::Running(started) => {
                duration_ms = draft.now().since_ms(started.at);
                delegate::stop_of(draft, tool_call, why);
                (ToolStatus::Interrupted, format!("{why} {}", words::WAS_RUNNING))
            }
            Stage::Asking(approval) => {
                approvals::withdraw(draft, approval);
                (ToolStatus::Interrupted, why.to_owned())
            }
            Stage::Named | Stage::Proposed | Stage::ToAsk | Stage::Allowed | Stage::Closed(_) => {
                (ToolStatus::Interrupted, why.to_owned())
            }
        };
        let outcome = match status {
            ToolStatus::Denied => calls::denied(text),
            _ => ToolOutcome::text(status, text),
        };
        let outcome = ToolOutcome {
            duration_ms,
            ..outcome
        };
        draft.emit(ToolFinished { tool_call, outcome });
    }
    questions::withdraw(draft, |subject| matches!(subject, Subject::Verdict(_)));
}

fn finished(draft: &Draft<'_, '_>, reason: EndReason, error: Option<TurnError>) -> Option<TurnFinished> {
    draft.turn().map(|turn| TurnFinished {
        reason,
        text: turn.text.clone(),
        steps: turn.steps,
        tool_calls: turn.tool_calls,
        usage: turn.usage,
        cost_usd: turn.cost_usd,
        error,
    })
}

/// Ends a streaming attempt. An answer that is only waiting for verdicts arrived in time: it is kept and charged.
fn stop_model(draft: &mut Draft<'_, '_>) {
    if let Some(answer) = draft.volatile().answer.take() {
        return attempts::record(draft, answer);
    }
    let live = draft.volatile().live.take();
    let Some(Phase::Streaming(current)) = draft.turn().map(|turn| &turn.phase) else {
        return;
    };
    let (call, attempt) = (current.call, current.attempt);
    if live.is_some() {
        draft.effect(Effect::KillModel { call, attempt });
    }
    draft.emit(ModelFailed {
        call,
        attempt,
        class: FailureClass::Cancelled,
        message: "the turn was cancelled".to_owned(),
        status: None,
        retry_at: None,
        partial: live
            .map(|live| live.partial)
            .filter(|partial| !partial.is_empty()),
        usage: None,
        cost_usd: None,
        credential: None,
        remedy: None,
    });
}
