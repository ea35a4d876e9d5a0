//! After an answer with a call in its text that was not made: the model hears why and may make it. If it does not, the turn
//! ends with a warning.

use crate::durable::{Durable, Turn};
use crate::steps::{Next, end, limits};
use crate::words;
use agentd_protocol::{EndReason, NoteKind, Timestamp, Unmade, UnmadeCall, WarningRaised};

/// What follows such an answer; none: the turn goes on or ends as usual.
pub(super) fn next(durable: &Durable, turn: &Turn, now: Timestamp) -> Option<Next> {
    let unmade = turn.unmade.as_ref().filter(|_| !turn.summarizing)?;
    if may_ask(durable, turn, unmade) && limits::has_room(durable, now) {
        return Some(Next::Call(Some((NoteKind::IntentNudge, words::unmade(unmade)))));
    }
    match unmade.kind {
        Unmade::Broken => Some(end(EndReason::ToolError, "unreadable_call", &message(unmade))),
        // The turn ends as truncated.
        Unmade::Cut => None,
        // The model was asked and gave the same answer: it is text.
        Unmade::Unclear => Some(Next::End(EndReason::Completed, None)),
    }
}

fn may_ask(durable: &Durable, turn: &Turn, unmade: &UnmadeCall) -> bool {
    match unmade.kind {
        Unmade::Broken => turn.guards.nudges < durable.limits().intent_retries.max(1),
        Unmade::Cut => turn.guards.may_cut_again(),
        Unmade::Unclear => turn.guards.nudges == 0,
    }
}

/// The warning of a turn that ends with such an answer.
pub(super) fn warning(turn: &Turn) -> Option<WarningRaised> {
    turn.unmade.as_ref().map(|unmade| WarningRaised {
        code: "unmade_call".to_owned(),
        message: message(unmade),
    })
}

fn message(unmade: &UnmadeCall) -> String {
    let problem = &unmade.problem;
    match unmade.kind {
        Unmade::Broken => format!(
            "the answer ends with a tool call that cannot be read and was not run: {problem}; another model may write it better"
        ),
        Unmade::Cut => format!(
            "the output limit cut off a tool call, which was not run ({problem}); raise max_output or ask for less at a time"
        ),
        Unmade::Unclear => format!(
            "the answer may contain a tool call that was not run: {problem}; docs/models.md says which \
             calls in a text count (capabilities.text_calls)"
        ),
    }
}
