//! One logical model call and its attempts: text, answer, failure, back-off, new attempt.

pub(crate) mod cache_lifetime;
pub(crate) mod cache_watch;
pub(crate) mod choose;
pub(crate) mod launch;
pub(crate) mod left_out;
pub(crate) mod model_outcome;
pub(crate) mod outer;
pub(crate) mod remedy;
pub(crate) mod stutter;
pub(crate) mod token_estimate;
pub(crate) mod unseen;

use crate::attempts::stutter::stutters;
use crate::draft::Draft;
use crate::durable::{Attempt, Phase};
use crate::effect::Effect;
use crate::input::{ModelAnswer, ModelFailure};
use crate::steps::guards::STUTTER;
use crate::volatile::{Live, UnrecordedAnswer};
use crate::{
    calls::judging,
    context::overflow,
    steps::{ending, limits},
    tree::shared_budget,
    words,
};
use agentd_protocol::{
    Advice, Block, CallId, FailureClass, Latency, ModelFailed, ModelFinished, Reading, RequestItem,
    StopReason, Usage, WarningRaised,
};
use std::collections::BTreeMap;

/// Starts the next attempt when its back-off is over, unless a budget has been used up in the meantime.
pub(crate) fn retry_when_due(draft: &mut Draft<'_, '_>) -> bool {
    if draft.held() || overflow::comes_first(draft) {
        return false;
    }
    let due = match draft.turn().map(|turn| &turn.phase) {
        Some(Phase::BackingOff { retry_at, last, .. }) => {
            (draft.seen().backoff_over || *retry_at <= draft.now()).then(|| last.clone())
        }
        _ => None,
    };
    due.is_some_and(|last| {
        // A parent may have stopped waiting during a long back-off, or while this session was faulted.
        if !shared_budget::is_known(draft) {
            return false;
        }
        if let Some((reason, error)) = limits::spent_before_retry(draft) {
            ending::finish(draft, reason, Some(error));
            return true;
        }
        let tools_off = last.tools_off;
        launch::launch(draft, Some(last), tools_off)
    })
}

/// Keeps the text of a streaming attempt and runs the stutter guard on it.
pub(crate) fn text(draft: &mut Draft<'_, '_>, id: (CallId, u32), text: &str) {
    let guarded = draft.durable().limits().stutter_guard;
    let room = draft.config().max_partial_bytes;
    let Some(live) = live(draft, id) else { return };
    let left = room.saturating_sub(live.partial.len());
    live.partial
        .push_str(text.get(..text.floor_char_boundary(left)).unwrap_or_default());
    if guarded && live.stutter.feed(text) {
        draft.effect(Effect::KillModel {
            call: id.0,
            attempt: id.1,
        });
        stumble(draft, id, None);
    }
}

/// Handles an attempt's answer. If it has tool calls, nothing is recorded until they are judged.
pub(crate) fn answered(draft: &mut Draft<'_, '_>, id: (CallId, u32), mut answer: ModelAnswer) {
    if live(draft, id).is_none() {
        return;
    }
    if draft.durable().limits().stutter_guard && answer.content.iter().any(is_stutter) {
        return stumble(draft, id, Some((answer.usage, answer.cost_usd)));
    }
    draft.volatile().live = None;
    for block in &mut answer.content {
        if let Block::ToolUse { id, .. } = block {
            *id = draft.stamp().tool_call().to_string();
        }
    }
    let why_not = unrunnable(draft, &answer);
    let asks = answer
        .content
        .iter()
        .any(|block| matches!(block, Block::ToolUse { .. }));
    let answer = UnrecordedAnswer {
        call: id.0,
        attempt: id.1,
        answer,
        rulings: BTreeMap::new(),
    };
    match (asks, why_not) {
        (false, _) => record(draft, answer),
        (true, None) => judging::begin(draft, answer),
        (true, Some(text)) => {
            record(draft, answer);
            ending::close_calls(draft, text);
        }
    }
}

/// Records an answer in the log.
pub(crate) fn record(draft: &mut Draft<'_, '_>, answered: UnrecordedAnswer) {
    let UnrecordedAnswer {
        call,
        attempt,
        answer,
        ..
    } = answered;
    let stop_reason = answer.stop_reason;
    let (usage, uncounted) = token_estimate::of(draft, &answer);
    let current = current(draft);
    let credential = other_credential(current.as_ref(), answer.credential);
    let cold = current
        .as_ref()
        .and_then(|current| cache_watch::broken(draft, current, &answer.usage, credential.as_ref()));
    draft.emit(ModelFinished {
        call,
        attempt,
        content: answer.content,
        stop_reason,
        usage,
        cost_usd: answer.cost_usd,
        latency: answer.latency,
        credential,
        reading: answer.reading,
    });
    let unread = current
        .as_ref()
        .and_then(|current| cache_watch::unread(draft, &current.model, &usage));
    let volatile = draft.volatile();
    volatile.warm_prefix = volatile.sent_prefix;
    let left_out = current.as_ref().and_then(|current| left_out(draft, current));
    let unseen = current
        .as_ref()
        .and_then(|current| unseen::unseen(draft, &current.model));
    for warning in uncounted
        .into_iter()
        .chain(cold)
        .chain(unread)
        .chain(left_out)
        .chain(unseen)
    {
        draft.emit(warning);
    }
    if stop_reason == StopReason::Other {
        draft.emit(WarningRaised {
            code: "unknown_stop_reason".to_owned(),
            message: "the model stopped for a reason that this version does not know; taken as the end of its answer"
                .to_owned(),
        });
    }
}

/// Tells people what the provider refused, once the model has answered without it.
fn left_out(draft: &Draft<'_, '_>, current: &Attempt) -> Option<WarningRaised> {
    let taught = draft.durable().outer.taught.get(&current.model)?;
    let found = current.tries.omissions > 0 && !taught.left_out.items.is_empty();
    found.then(|| WarningRaised {
        code: "left_out".to_owned(),
        message: words::left_out(&RequestItem::in_words(&taught.left_out.items), &current.model),
    })
}

/// Handles a failed attempt: schedules another one, or ends the call.
pub(crate) fn failed(draft: &mut Draft<'_, '_>, id: (CallId, u32), mut failure: ModelFailure) {
    if failure.class == FailureClass::Cancelled {
        // Only the core cancels, and then it no longer listens: a kill that it did not order is a bug of ours.
        failure.class = FailureClass::Internal;
    }
    let Some(current) = live(draft, id).is_some().then(|| current(draft)).flatten() else {
        return;
    };
    if let Some(Advice::Miscalled { name, said }) = &failure.advice
        && current.failures > 0
    {
        let (name, said) = (name.clone(), said.clone());
        return miscalled(draft, id, &failure, (name, said));
    }
    let next = choose::after(draft, &current, &failure);
    overflow::learn(draft, &current.model, failure.advice.as_ref());
    let (retry_at, remedy) = next.map_or((None, None), |next| (Some(next.retry_at), next.remedy));
    draft.volatile().live = None;
    draft.emit(ModelFailed {
        call: id.0,
        attempt: id.1,
        class: failure.class,
        message: failure.message,
        status: failure.status,
        retry_at,
        partial: None,
        usage: failure.spent.map(|(usage, _)| usage),
        cost_usd: failure.spent.and_then(|(_, cost_usd)| cost_usd),
        credential: other_credential(Some(&current), failure.credential),
        remedy,
    });
}

/// The model again wrote a call that its server cannot parse. The call is recorded as made, with a result that says
/// what is wrong: the model learns of the mistake, and the guards count a failed step.
fn miscalled(
    draft: &mut Draft<'_, '_>,
    (call, attempt): (CallId, u32),
    failure: &ModelFailure,
    (name, said): (String, String),
) {
    draft.volatile().live = None;
    let (usage, cost_usd) = failure.spent.unwrap_or_default();
    let id = draft.stamp().tool_call().to_string();
    draft.emit(ModelFinished {
        call,
        attempt,
        content: vec![Block::ToolUse {
            id,
            name,
            input: said.into(),
        }],
        stop_reason: StopReason::ToolUse,
        usage,
        cost_usd,
        latency: Latency::default(),
        credential: None,
        reading: Reading::default(),
    });
    ending::close_calls(draft, &words::miscalled(&failure.message));
}

/// The credential that was used, if it differs from the one in the log.
fn other_credential(current: Option<&Attempt>, used: Option<String>) -> Option<String> {
    let said = current.and_then(|current| current.credential.as_ref());
    used.filter(|used| said != Some(used))
}

fn live<'a>(draft: &'a mut Draft<'_, '_>, (call, attempt): (CallId, u32)) -> Option<&'a mut Live> {
    let live = draft.volatile().live.as_mut()?;
    (live.call == call && live.attempt == attempt).then_some(live)
}

fn current(draft: &Draft<'_, '_>) -> Option<Attempt> {
    match &draft.turn()?.phase {
        Phase::Streaming(current) => Some(current.clone()),
        Phase::Ready
        | Phase::BackingOff { .. }
        | Phase::GaveUp { .. }
        | Phase::Calling { .. }
        | Phase::Answered { .. }
        | Phase::AtLimit(_) => None,
    }
}

fn is_stutter(block: &Block) -> bool {
    matches!(block, Block::Text { text } if stutters(text))
}

/// Why the calls of an answer must not run, if so.
fn unrunnable(draft: &Draft<'_, '_>, answer: &ModelAnswer) -> Option<&'static str> {
    let turn = draft.turn()?;
    match answer.stop_reason {
        StopReason::MaxTokens => return Some(words::CUT_AT_LIMIT),
        StopReason::ContextWindow => return Some(words::CUT_OFF),
        StopReason::Refusal | StopReason::ContentFilter => return Some(words::REFUSED),
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::PauseTurn
        | StopReason::Other => {}
    }
    if turn.summarizing {
        return Some(words::TOOLS_OFF);
    }
    let calls = answer.content.iter().filter_map(|block| match block {
        Block::ToolUse { name, input, .. } => Some((name.as_str(), input)),
        _ => None,
    });
    turn.guards.would_loop(calls).then_some(words::REPEATED)
}

/// Fails the attempt for stuttering; one retry is allowed. The cost of a complete answer is charged anyway.
fn stumble(draft: &mut Draft<'_, '_>, (call, attempt): (CallId, u32), spent: Option<(Usage, Option<f64>)>) {
    let Some(current) = current(draft) else { return };
    let retry_at = (current.stutters == 0).then(|| {
        let dice = draft.stamp().next_u64();
        let wait = choose::own_backoff_ms(draft.config(), current.failures, dice);
        draft.now().plus_ms(wait)
    });
    draft.volatile().live = None;
    draft.emit(ModelFailed {
        call,
        attempt,
        class: FailureClass::Transient,
        message: STUTTER.to_owned(),
        status: None,
        retry_at,
        partial: None,
        usage: spent.map(|(usage, _)| usage),
        cost_usd: spent.and_then(|(_, cost_usd)| cost_usd),
        credential: None,
        remedy: None,
    });
}
