//! A conversation too long for the model: it is made shorter before the next attempt, or the turn ends with the reason.

use crate::draft::Draft;
use crate::durable::{Attempt, Phase};
use crate::effect::Shrink;
use crate::input::Shrunk;
use crate::lifecycle::event::LifecycleEvent;
use crate::questions::{self, Question};
use crate::{
    attempts::{launch, remedy},
    context, lifecycle,
    steps::{ending, limits},
};
use agentd_protocol::{
    Advice, CallId, CompactionCause, EndReason, FailureClass, HookEvent, Remedy, Timestamp, WarningRaised,
};

/// Percent of the room that the conversation may have after the first, second and any later compaction.
const AFTER_COMPACTION: [u64; 3] = [60, 40, 25];
/// Percent of the room that the conversation may have after its tool results were cut.
const AFTER_TRUNCATION: u64 = 50;

/// A pending request to make the conversation shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shrinking {
    pub(crate) call: CallId,
    /// 0: not caused by a failed attempt.
    pub(crate) attempt: u32,
    pub(crate) how: Shrink,
    pub(crate) cause: CompactionCause,
    pub(crate) since: Timestamp,
    /// The target size in tokens.
    pub(crate) target_tokens: u64,
}

/// What an error revealed about a model's window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    model: String,
    tokens: u64,
    /// Tokens of the request by the server's count, with our estimate of it.
    sent: Option<(u64, u64)>,
}

/// The failed attempt and its remedy, while the conversation has yet to be made shorter.
fn due<'a>(draft: &'a Draft<'_, '_>) -> Option<(&'a Attempt, Shrink, &'a str)> {
    match &draft.turn()?.phase {
        Phase::BackingOff {
            last,
            remedy,
            message,
            ..
        } => Some((last, how(remedy.as_ref())?, message)),
        _ => None,
    }
}

/// How the remedy makes the conversation shorter, if it does.
pub(crate) const fn how(remedy: Option<&Remedy>) -> Option<Shrink> {
    match remedy {
        Some(Remedy::Compact) => Some(Shrink::Compact),
        Some(Remedy::TruncateResults) => Some(Shrink::TruncateResults),
        _ => None,
    }
}

/// Keeps what a failure reveals about the window. Not in the log: after a restart, the next overflow reveals it again.
pub(crate) fn learn(draft: &mut Draft<'_, '_>, model: &str, advice: Option<&Advice>) {
    if let Some(Advice::Window { tokens, sent }) = advice {
        let estimate = draft.scene.input_tokens_estimate;
        draft.volatile().window = Some(Window {
            model: model.to_owned(),
            tokens: *tokens,
            sent: sent.filter(|sent| *sent > 0).map(|sent| (sent, estimate)),
        });
    }
}

/// The window that the server reported for a model.
pub(crate) fn told(draft: &Draft<'_, '_>, model: &str) -> Option<u64> {
    let window = draft.seen().window.as_ref()?;
    (window.model == model).then_some(window.tokens)
}

/// The share of a window that the answer may take: an answer that could fill it would leave no room for the question.
pub(crate) fn of_answer(max_output: u64, window: u64) -> u64 {
    max_output.min(window / 2)
}

/// Whether only the room reserved for the answer was too large, and less will be reserved now that the window is known.
/// Call this before [`learn`].
pub(crate) fn less_is_asked(draft: &Draft<'_, '_>, model: &str, advice: Option<&Advice>) -> bool {
    let (Some(Advice::Window { tokens, sent }), Ok(facts)) = (advice, (draft.scene.models)(model)) else {
        return false;
    };
    let asked_in = told(draft, model).unwrap_or(facts.window);
    let asked = of_answer(facts.max_output, asked_in);
    let answer = of_answer(facts.max_output, *tokens);
    // Some servers count the room for the answer as part of the request.
    let conversation = sent
        .filter(|sent| sent <= tokens)
        .unwrap_or(draft.scene.input_tokens_estimate);
    answer < asked && conversation.saturating_add(answer) <= *tokens
}

/// Requests a shorter conversation if one is needed and not yet requested. True: the next attempt has to wait for it.
pub(crate) fn comes_first(draft: &mut Draft<'_, '_>) -> bool {
    let Some((last, how, _)) = due(draft) else {
        return false;
    };
    let (call, attempt) = (last.call, last.attempt);
    if draft.seen().shrinking.is_none() {
        let (cause, since) = (CompactionCause::Overflow, draft.now());
        ask(
            draft,
            Shrinking {
                call,
                attempt,
                how,
                cause,
                since,
                target_tokens: 0,
            },
        );
    }
    true
}

fn ask(draft: &mut Draft<'_, '_>, shrinking: Shrinking) {
    let target_tokens = target(draft, shrinking.how);
    begin(
        draft,
        Shrinking {
            target_tokens,
            ..shrinking
        },
    );
}

/// Starts making the conversation shorter, unless hooks object.
pub(crate) fn begin(draft: &mut Draft<'_, '_>, shrinking: Shrinking) {
    let Shrinking {
        call, attempt, how, ..
    } = shrinking;
    let hears = how == Shrink::Compact && draft.config().hooks.contains(&HookEvent::Compaction);
    if hears && draft.seen().draining {
        // The next incarnation asks.
        return;
    }
    draft.volatile().shrinking = Some(shrinking);
    if hears {
        let (tokens, target) = (draft.scene.input_tokens_estimate, shrinking.target_tokens);
        let topic = LifecycleEvent::Compaction {
            call,
            attempt,
            tokens,
            target,
        };
        return lifecycle::ask(draft, topic);
    }
    start(draft, shrinking);
}

/// Whether hooks are being asked about the compaction for this attempt.
pub(crate) fn is_vetted(shrinking: Option<Shrinking>, id: (CallId, u32)) -> bool {
    shrinking.is_some_and(|asked| (asked.call, asked.attempt) == id && asked.how == Shrink::Compact)
}

/// Handles the hooks' answer about a compaction. If they veto it, long results can still be cut.
pub(crate) fn vetted(draft: &mut Draft<'_, '_>, id: (CallId, u32), objection: Option<String>) {
    let Some(asked) = draft.seen().shrinking.filter(|asked| is_vetted(Some(*asked), id)) else {
        return;
    };
    if draft.held() {
        // Nothing new starts; a caller that needs it will ask again later.
        draft.volatile().shrinking = None;
        return;
    }
    let Some(why) = objection else {
        return start(draft, asked);
    };
    let code = "compaction_vetoed".to_owned();
    let message = format!("the conversation is not summed up: {why}");
    draft.emit(WarningRaised { code, message });
    shrunk(draft, Shrunk::Vetoed(why));
}

fn start(draft: &mut Draft<'_, '_>, shrinking: Shrinking) {
    let summariser = (shrinking.how == Shrink::Compact)
        .then(|| {
            let failed = due(draft).map(|(last, ..)| last.model.clone());
            let model = failed.unwrap_or_else(|| launch::model(draft, None));
            context::summariser(draft, &model)
        })
        .flatten();
    let question = Question::Shorten {
        how: shrinking.how,
        target_tokens: shrinking.target_tokens,
        cause: shrinking.cause,
        summariser,
    };
    questions::ask(draft, question);
}

/// Records how the conversation became shorter, or why it did not.
pub(crate) fn write_down(draft: &mut Draft<'_, '_>, asked: Shrinking, shrunk: Shrunk) -> Option<String> {
    let tokens = match &shrunk {
        Shrunk::Compacted(compacted) => compacted.tokens_after,
        Shrunk::Truncated(truncated) => truncated.tokens_after,
        Shrunk::Pruned(pruned) => pruned.tokens_after,
        Shrunk::Trimmed(trimmed) => trimmed.tokens_after,
        Shrunk::Vetoed(_) | Shrunk::Nothing => draft.scene.input_tokens_estimate,
    };
    draft.scene.input_tokens_estimate = tokens;
    match shrunk {
        Shrunk::Compacted(mut compacted) => {
            compacted.cause = asked.cause;
            draft.emit(compacted);
        }
        Shrunk::Truncated(truncated) => draft.emit(truncated),
        Shrunk::Pruned(pruned) => draft.emit(pruned),
        Shrunk::Trimmed(trimmed) => draft.emit(trimmed),
        Shrunk::Vetoed(why) => return Some(why),
        Shrunk::Nothing => return Some("there is nothing to gain: it is short already".to_owned()),
    }
    None
}

/// Records a shorter conversation; if nothing was gained, takes the next remedy or ends the turn.
pub(crate) fn shrunk(draft: &mut Draft<'_, '_>, shrunk: Shrunk) {
    let Some(asked) = draft.seen().shrinking else {
        return;
    };
    if asked.attempt == 0 {
        return context::shrunk(draft, asked, shrunk);
    }
    draft.volatile().shrinking = None;
    let Some((last, _, message)) = due(draft) else {
        return;
    };
    let (last, message) = (last.clone(), message.to_owned());
    match shrunk {
        Shrunk::Compacted(_) | Shrunk::Truncated(_) | Shrunk::Pruned(_) | Shrunk::Trimmed(_) => {
            write_down(draft, asked, shrunk);
        }
        Shrunk::Nothing | Shrunk::Vetoed(_) if asked.how == Shrink::Compact && !last.tries.truncated => {
            ask(
                draft,
                Shrinking {
                    how: Shrink::TruncateResults,
                    ..asked
                },
            );
        }
        Shrunk::Nothing | Shrunk::Vetoed(_) => {
            let name = remedy::row(FailureClass::ContextOverflow).name;
            let error = limits::error(name, explained(draft, &last.model, &message));
            ending::finish(draft, EndReason::ContextOverflow, Some(error));
        }
    }
}

/// The window of a model in tokens, as reported by its server or as configured.
pub(crate) fn window(draft: &Draft<'_, '_>, model: &str) -> Option<u64> {
    let taught = draft
        .seen()
        .window
        .as_ref()
        .filter(|window| window.model == model);
    let configured = || (draft.scene.models)(model).ok().map(|facts| facts.window);
    taught
        .map(|window| window.tokens)
        .or_else(configured)
        .filter(|tokens| *tokens > 0)
}

/// Tokens that the conversation may have, in our own measure, which may differ from the server's.
fn target(draft: &Draft<'_, '_>, how: Shrink) -> u64 {
    let model = due(draft).map_or_else(String::new, |(last, ..)| last.model.clone());
    let estimate = draft.scene.input_tokens_estimate.max(1);
    let max_output = (draft.scene.models)(&model).map_or(0, |facts| facts.max_output);
    let window = window(draft, &model).map_or(estimate, |window| window - of_answer(max_output, window));
    let taught = draft
        .seen()
        .window
        .as_ref()
        .filter(|window| window.model == model);
    let ours = match taught.and_then(|taught| taught.sent) {
        Some((sent, estimated)) => {
            let scaled = u128::from(window).saturating_mul(u128::from(estimated.max(1))) / u128::from(sent);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        }
        None => window,
    };
    let room = ours.min(estimate);
    let percent = match how {
        Shrink::TruncateResults | Shrink::CapResults | Shrink::Prune | Shrink::Trim => AFTER_TRUNCATION,
        Shrink::Compact => {
            let before = draft.turn().map_or(0, |turn| turn.compactions).saturating_sub(1);
            let [.., least] = AFTER_COMPACTION;
            AFTER_COMPACTION.get(before as usize).copied().unwrap_or(least)
        }
    };
    room.saturating_mul(percent) / 100
}

/// The reason for the end of the turn, in numbers, with what a person can do.
pub(crate) fn explained(draft: &Draft<'_, '_>, model: &str, message: &str) -> String {
    let taught = draft
        .seen()
        .window
        .as_ref()
        .filter(|window| window.model == model);
    let sent = taught.and_then(|taught| taught.sent).map(|(sent, _)| sent);
    let tokens = sent.unwrap_or(draft.scene.input_tokens_estimate);
    let window = match window(draft, model) {
        Some(window) => format!("the window of {model} has {window}"),
        None => format!("the window of {model} is smaller"),
    };
    let fix = remedy::row(FailureClass::ContextOverflow).fix;
    format!(
        "{message} (the conversation has about {tokens} tokens, {window}, and it cannot be made shorter without losing \
         the task; {fix})"
    )
}
