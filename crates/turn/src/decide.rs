//! The turn loop: what each input means, and how far the turn then proceeds without another input.

use crate::draft::Draft;
use crate::durable::Phase;
use crate::input::Input;
use crate::{
    approvals, attempts, calls, command, context, ending, following, history, hooks, inbox, jobs, judging,
    occasions, overflow, recover, reporting, side, steps, timers, tree, weighing,
};
use agentd_protocol::WarningRaised;

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
        Input::Shrunk {
            call,
            attempt,
            shrunk,
        } => overflow::shrunk(draft, (call, attempt), shrunk),
        Input::Hooked { tool_call, records } => hooks::finished(draft, tool_call, records),
        Input::Heard { number, records } => occasions::heard(draft, number, records),
        Input::Judged { tool_call, judged } => judging::judged(draft, tool_call, judged),
        Input::ToolEnded { tool_call, outcome } => calls::ended(draft, tool_call, outcome),
        Input::JobStarted { job, command } => jobs::started(draft, job, command),
        Input::JobEnded { job, end } => jobs::ended(draft, job, end),
        Input::Deciders { approval, count } => approvals::counted(draft, approval, count),
        Input::SideEnded(ended) => side::ended(draft, ended),
        Input::Counted { call } => weighing::counted(draft, call),
        Input::Warned { code, message } => draft.emit(WarningRaised {
            code: code.to_owned(),
            message,
        }),
        Input::Told { heard } => reporting::told(draft, heard),
        Input::TreeSpent { number, spent } => tree::answered(draft, number, spent),
        Input::Reworked(reworked) => history::ended(draft, reworked),
        Input::Timer { key, generation } => timers::fired(draft, key, generation),
        Input::Recover => recover::recover(draft),
        Input::Drain => {
            draft.volatile().draining = true;
            side::stop_all(draft);
            weighing::stop(draft);
            jobs::stop_all(draft, jobs::DRAINING);
        }
    }
    occasions::begin(draft);
    go_on(draft);
    following::lead(draft);
    reporting::tell(draft);
    side::begin(draft);
    occasions::announce(draft);
    occasions::reconcile(draft);
    timers::reconcile(draft);
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
