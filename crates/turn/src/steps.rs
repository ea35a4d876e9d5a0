//! Between two steps: does the turn end, or is there another model call, and which note does the model get before it?

pub(crate) mod cycles;
pub(crate) mod ending;
pub(crate) mod guards;
pub(crate) mod limits;
pub(crate) mod surroundings;
mod unmade;

use crate::draft::Draft;
use crate::durable::{Durable, Phase, Turn};
use crate::steps::limits::Leave;
use crate::{
    Config,
    attempts::launch,
    calls::jobs,
    checkpoints, context, inbox, lifecycle,
    planning::{self, intent_guard},
    setup,
    tree::shared_budget,
    words,
};
use agentd_protocol::{EndReason, NoteInjected, NoteKind, StopReason, Timestamp, TurnError, WarningRaised};

/// The decision after a step.
enum Next {
    /// The turn ends.
    End(EndReason, Option<TurnError>),
    /// Another model call, with an optional nudge before it.
    Call(Option<Nudge>),
}

/// A note that makes the model continue.
type Nudge = (NoteKind, String);

/// The gates before a model call, in this order. The first one that is closed decides.
const GATES: [fn(&mut Draft<'_, '_>) -> Leave; 5] = [
    // The workspace is set up.
    setup::comes_first,
    // The intent of the inputs is known, if a plan may depend on it.
    |draft| Leave::unless(planning::comes_first(draft)),
    // The conversation fits into the window.
    |draft| Leave::unless(context::comes_first(draft)),
    // The spending of the tree of agents is known.
    |draft| Leave::unless(!shared_budget::is_known(draft)),
    // No limit is reached. The last gate: only it records something.
    limits::ask_leave,
];

/// The notes that the model gets before a call, in this order.
const NOTES: [fn(&mut Draft<'_, '_>); 4] = [jobs::tell, surroundings::tell, planning::tell, note_guards];

/// Ends the turn, or starts its next model call unless the session is held. True when there may be more to do.
pub(crate) fn next(draft: &mut Draft<'_, '_>) -> bool {
    let Some(turn) = draft.turn() else { return false };
    let joining = !inbox::joins_next(draft).is_empty();
    let nudge = match decide_next(draft.durable(), turn, joining, draft) {
        Next::End(EndReason::Completed, None) if !lifecycle::lets_stop(draft) => return false,
        Next::End(EndReason::Completed, None) if checkpoints::come_before_the_end(draft) => return false,
        Next::End(reason, error) => {
            if reason == EndReason::Completed && draft.turn().is_some_and(Turn::is_silent) {
                draft.emit(empty_answer());
            }
            if let Some(warning) = draft.turn().and_then(unmade::warning) {
                draft.emit(warning);
            }
            ending::finish(draft, reason, error);
            return true;
        }
        Next::Call(_) if draft.held() => return false,
        Next::Call(nudge) => nudge,
    };
    for gate in GATES {
        match gate(draft) {
            Leave::Go => {}
            Leave::Wait => return false,
            Leave::GoWithoutTools => return launch::launch(draft, None, true),
            Leave::End(reason, error) => {
                ending::finish(draft, reason, Some(error));
                return true;
            }
        }
    }
    for note in NOTES {
        note(draft);
    }
    if let Some((kind, text)) = nudge {
        draft.emit(NoteInjected { kind, text });
    }
    launch::launch(draft, None, false)
}

fn note_guards(draft: &mut Draft<'_, '_>) {
    let limits = draft.durable().limits();
    if let Some(text) = draft.turn().and_then(|turn| turn.guards.note(&limits)) {
        draft.emit(NoteInjected {
            kind: NoteKind::Guard,
            text,
        });
    }
}

fn decide_next(durable: &Durable, turn: &Turn, joining: bool, draft: &Draft<'_, '_>) -> Next {
    let (config, now) = (draft.config(), draft.now());
    if turn.stopped_at_limit {
        return Next::End(EndReason::MaxTurns, Some(limits::steps_used_up(turn.steps)));
    }
    let Phase::Answered { stop, called } = turn.phase else {
        return Next::Call(None);
    };
    if turn.denied {
        let message = "a tool call was denied, and on_deny = \"stop\" ends the turn then";
        return end(EndReason::Denied, "denied", message);
    }
    if let Some(next) = stuck(durable, turn) {
        return next;
    }
    if let Some(next) = unmade::next(durable, turn, now) {
        return next;
    }
    match stop {
        StopReason::MaxTokens if called && turn.guards.may_cut_again() => {}
        StopReason::MaxTokens => {
            let message =
                "the model's output limit cut off the answer; raise max_output or ask for less at a time";
            return end(EndReason::Truncated, "truncated", message);
        }
        StopReason::ContextWindow => {
            let message =
                "the context window was full before the answer was complete; compact or start a new session";
            return end(EndReason::Truncated, "truncated", message);
        }
        StopReason::Refusal | StopReason::ContentFilter => {
            let message = "the provider refused to answer; rephrase the request";
            return end(EndReason::Refused, "content_filter", message);
        }
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::PauseTurn
        | StopReason::Other => {}
    }
    if turn.summarizing {
        return Next::End(EndReason::MaxTurns, Some(limits::steps_used_up(turn.steps)));
    }
    if called || stop == StopReason::PauseTurn || joining || turn.goes_on.is_some() {
        return Next::Call(None);
    }
    let nudge = nudge(durable, turn, config, now)
        .or_else(|| planning::nudge(durable, turn, now))
        .or_else(|| once_more(durable, turn, now));
    match nudge {
        Some(nudge) => Next::Call(Some(nudge)),
        None => Next::End(EndReason::Completed, None),
    }
}

/// The end of a turn whose model goes on as it was warned not to.
fn stuck(durable: &Durable, turn: &Turn) -> Option<Next> {
    if turn.guards.looping() {
        let message = "the model made the same tool call again after it was told that it repeats itself";
        return Some(end(EndReason::LoopDetected, "loop_detected", message));
    }
    if turn.guards.cycles.goes_on() {
        let message = "the model went through the same steps again, with the same results, after it was told that it repeats itself";
        return Some(end(EndReason::LoopDetected, "loop_detected", message));
    }
    if turn.guards.hopeless(&durable.limits()) {
        let message = "every tool call of many steps failed, and the model went on after it was told; see what the calls say \
                       (loop.failing_steps sets how soon this is)";
        return Some(end(EndReason::ToolError, "tool_error", message));
    }
    None
}

fn end(reason: EndReason, class: &str, message: &str) -> Next {
    Next::End(reason, Some(limits::error(class, message)))
}

/// A model that produced nothing at all is called once more. After a second empty answer, the answer stays empty.
fn once_more(durable: &Durable, turn: &Turn, now: Timestamp) -> Option<Nudge> {
    let wanted = turn.is_silent() && turn.guards.empty_answers == 1 && limits::has_room(durable, now);
    wanted.then(|| (NoteKind::IntentNudge, words::SAY_SOMETHING.to_owned()))
}

fn empty_answer() -> WarningRaised {
    WarningRaised {
        code: "empty_answer".to_owned(),
        message: "the model ended the turn without any text".to_owned(),
    }
}

/// The nudge after an announced action that was not taken. Omitted if the extra call would hit a limit: the answer is
/// complete enough not to ask a person about it.
fn nudge(durable: &Durable, turn: &Turn, config: &Config, now: Timestamp) -> Option<Nudge> {
    let wanted = turn.guards.nudges < durable.limits().intent_retries
        && limits::has_room(durable, now)
        && config.intent.announces(&config.intent_patterns, &turn.text);
    wanted.then(|| {
        (
            NoteKind::IntentNudge,
            words::nudge(intent_guard::is_cjk(&turn.text)).to_owned(),
        )
    })
}
