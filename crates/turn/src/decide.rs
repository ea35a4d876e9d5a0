//! The turn loop: what each input means, and how far the turn then proceeds without another input.

use crate::draft::Draft;
use crate::durable::Phase;
use crate::input::Input;
use crate::{
    attempts,
    calls::{self, approvals, call_hooks, jobs, judging},
    command,
    context::{self, overflow, token_count},
    history, inbox, lifecycle, recover, side,
    steps::{self, ending},
    timers,
    tree::{completion_report, following, shared_budget},
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
        Input::Hooked { tool_call, records } => call_hooks::finished(draft, tool_call, records),
        Input::Heard { number, records } => lifecycle::heard(draft, number, records),
        Input::Judged { tool_call, judged } => judging::judged(draft, tool_call, judged),
        Input::ToolEnded { tool_call, outcome } => calls::ended(draft, tool_call, outcome),
        Input::JobStarted { job, command } => jobs::started(draft, job, command),
        Input::JobEnded { job, end } => jobs::ended(draft, job, end),
        Input::Deciders { approval, count } => approvals::counted(draft, approval, count),
        Input::SideEnded(ended) => side::ended(draft, ended),
        Input::Counted { call } => token_count::counted(draft, call),
        Input::Warned { code, message } => draft.emit(WarningRaised {
            code: code.to_owned(),
            message,
        }),
        Input::Told { heard } => completion_report::told(draft, heard),
        Input::TreeSpent { number, spent } => shared_budget::answered(draft, number, spent),
        Input::Reworked(reworked) => history::ended(draft, reworked),
        Input::Timer { key, generation } => timers::fired(draft, key, generation),
        Input::Recover => recover::recover(draft),
        Input::Drain => {
            draft.volatile().draining = true;
            side::stop_all(draft);
            token_count::stop(draft);
            jobs::stop_all(draft, jobs::DRAINING);
        }
    }
    lifecycle::begin(draft);
    go_on(draft);
    following::lead(draft);
    completion_report::tell(draft);
    side::begin(draft);
    lifecycle::announce(draft);
    lifecycle::reconcile(draft);
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
