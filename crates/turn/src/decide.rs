//! The turn loop: what each input means, and how far the turn then proceeds without another input.

use crate::draft::Draft;
use crate::durable::Phase;
use crate::input::Input;
use crate::{
    attempts,
    calls::{self, call_hooks, jobs},
    checkpoints, command, context, inbox, lifecycle, questions, recover, side,
    steps::{self, ending},
    timers,
    tree::{completion_report, following},
};
use agentd_protocol::WarningRaised;

/// What follows every decision, in this order.
const PASSES: [fn(&mut Draft<'_, '_>); 9] = [
    lifecycle::begin,
    go_on,
    checkpoints::begin,
    following::lead,
    completion_report::tell,
    side::begin,
    lifecycle::announce,
    lifecycle::reconcile,
    timers::reconcile,
];

/// Decides what follows from an input.
pub(crate) fn decide(draft: &mut Draft<'_, '_>, input: Input) {
    match input {
        Input::Command { command, by } => command::obey(draft, command, by),
        Input::ModelText { call, attempt, text } => attempts::text(draft, (call, attempt), &text),
        Input::ModelAnswered {
            call,
            attempt,
            answer,
        } => attempts::answered(draft, (call, attempt), answer),
        Input::ModelFailed {
            call,
            attempt,
            failure,
        } => attempts::failed(draft, (call, attempt), failure),
        Input::Answered { id, answer } => questions::answered(draft, id, answer),
        Input::Hooked { tool_call, records } => call_hooks::finished(draft, tool_call, records),
        Input::ToolEnded { tool_call, outcome } => calls::ended(draft, tool_call, outcome),
        Input::JobStarted { job, command } => jobs::started(draft, job, command),
        Input::JobEnded { job, end } => jobs::ended(draft, job, end),
        Input::Warned { code, message } => draft.emit(WarningRaised {
            code: code.to_owned(),
            message,
        }),
        Input::Timer { key, generation } => timers::fired(draft, key, generation),
        Input::Recover => recover::recover(draft),
        Input::Drain => {
            draft.volatile().draining = true;
            questions::drain(draft);
            // An answer that waited for the files is recorded; the next incarnation records the files before its calls.
            calls::judging::go_on(draft);
            jobs::stop_all(draft, jobs::DRAINING);
        }
    }
    for pass in PASSES {
        pass(draft);
    }
}

/// Advances the turn as far as it goes without another input. Each function says whether there may be more to do.
fn go_on(draft: &mut Draft<'_, '_>) {
    loop {
        let more = match draft.turn().map(|turn| &turn.phase) {
            None => !context::between_turns(draft) && inbox::begin_turn(draft),
            Some(Phase::Ready | Phase::Answered { .. }) => steps::next(draft),
            Some(Phase::BackingOff { .. }) => attempts::retry_when_due(draft),
            Some(Phase::Calling { .. }) => calls::advance(draft),
            Some(Phase::GaveUp { .. }) => ending::give_up(draft),
            Some(Phase::Streaming(_) | Phase::AtLimit(_)) => false,
        };
        if !more {
            return;
        }
    }
}
