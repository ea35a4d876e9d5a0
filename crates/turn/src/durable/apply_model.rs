//! Folding the facts of model calls: attempts, answers, failures, and conversations made shorter.

use crate::attempts::outer::{Tries, Warm};
use crate::calls::open_call::{OpenCall, Stage};
use crate::durable::apply::Refusal;
use crate::durable::{Attempt, Durable, MAX_TEXT_BYTES, Phase, Turn};
use crate::steps::guards::STUTTER;
use crate::{
    attempts::{cache_watch, choose, unseen},
    checkpoints,
    context::overflow,
};
use agentd_protocol::{
    Block, ContextCompacted, FailureClass, ModelFailed, ModelFinished, ModelStarted, Remedy, StopReason,
    Timestamp, ToolCallId, Unmade, WarningRaised,
};
use serde_json::Value;

/// Steps without a compaction after which the budget for overflow compactions is reset.
const HEALTHY_STEPS: u32 = 4;

impl Durable {
    pub(crate) fn model_started(&mut self, started: &ModelStarted, at: Timestamp) -> Result<(), Refusal> {
        if started.inputs.iter().any(|input| self.waiting(*input).is_none()) {
            return Err("an input joins that does not wait");
        }
        let own = self.model().to_owned();
        let turn = self.running_turn()?;
        turn.goes_on = None;
        if turn.calls.iter().any(OpenCall::is_open) {
            return Err("a tool call is unanswered (I3)");
        }
        let last = match &turn.phase {
            Phase::Ready | Phase::Answered { .. } => None,
            Phase::Streaming(last) | Phase::BackingOff { last, .. } => Some(last),
            Phase::GaveUp { .. } | Phase::Calling { .. } | Phase::AtLimit(_) => {
                return Err("the turn does not wait for a model");
            }
        };
        let fresh = match last {
            Some(last) if last.call != started.call => return Err("another model call is open"),
            Some(last) if last.attempt >= started.attempt => return Err("the attempt is not a new one"),
            Some(_) => false,
            None => true,
        };
        let (failures, internal, stutters, mut tries) = match last {
            Some(last) if last.tries.own == own => {
                (last.failures, last.internal, last.stutters, last.tries.clone())
            }
            Some(last) => (0, last.internal, last.stutters, last.tries.moved_to(&own)),
            None => (0, 0, 0, Tries::of(&own)),
        };
        let model = started.configured.clone().unwrap_or(own);
        tries.models.insert(model.clone());
        let called = model.clone();
        turn.phase = Phase::Streaming(Attempt {
            call: started.call,
            attempt: started.attempt,
            step: started.step,
            started_at: at,
            tools_off: started.tools_off,
            failures,
            internal,
            stutters,
            model,
            provider: started.provider.clone(),
            credential: started.credential.clone(),
            thinking: started.thinking,
            cache_hour: started.cache_hour,
            tries,
        });
        turn.calls.clear();
        if fresh {
            turn.steps = turn.steps.saturating_add(1);
            self.totals.steps = self.totals.steps.saturating_add(1);
            let outer = &mut self.outer;
            outer.pauses = outer.pauses.and(outer.warm.as_ref(), at);
            outer.begins(&called);
        }
        self.outer.pin(&started.provider, started.credential.as_ref());
        self.leave_inbox(&started.inputs);
        Ok(())
    }

    pub(crate) fn model_finished(&mut self, finished: &ModelFinished, at: Timestamp) -> Result<(), Refusal> {
        let turn = self.running_turn()?;
        let attempt = streaming(turn, finished.call, finished.attempt)?.clone();
        let calls = named_calls(&finished.content)?;
        let text = text_of(&finished.content);
        if !text.is_empty() {
            turn.text = text;
        }
        if turn.is_silent() && calls.is_empty() {
            turn.guards.empty_answers = turn.guards.empty_answers.saturating_add(1);
        }
        let stop = finished.stop_reason;
        turn.unmade.clone_from(&finished.reading.unmade);
        let in_text = turn
            .unmade
            .as_ref()
            .is_some_and(|unmade| unmade.kind == Unmade::Cut);
        turn.guards
            .answered(in_text || (stop == StopReason::MaxTokens && !calls.is_empty()));
        turn.phase = match calls.is_empty() {
            true => Phase::Answered { stop, called: false },
            false => Phase::Calling { stop },
        };
        turn.calls = calls;
        turn.usage = turn.usage.plus(finished.usage);
        let cost = finished.cost_usd.unwrap_or_default();
        turn.cost_usd += cost;
        if turn.steps.saturating_sub(turn.compacted.1) >= HEALTHY_STEPS {
            turn.compactions = 0;
        }
        self.totals.usage = self.totals.usage.plus(finished.usage);
        self.totals.cost_usd += cost;
        let credential = finished.credential.clone().or(attempt.credential);
        self.outer.pin(&attempt.provider, credential.as_ref());
        self.outer.answered(&attempt.model);
        let left = cache_watch::left_by(&finished.usage);
        self.outer.warm = (left > 0).then_some(Warm {
            at,
            model: attempt.model,
            credential,
            thinking: attempt.thinking,
            left,
            hour: attempt.cache_hour,
            shortened: false,
        });
        Ok(())
    }

    pub(crate) fn model_failed(&mut self, failed: &ModelFailed, at: Timestamp) -> Result<(), Refusal> {
        let turn = self.running_turn()?;
        let attempt = streaming(turn, failed.call, failed.attempt)?.clone();
        if let Some(partial) = failed.partial.as_deref().filter(|partial| !partial.is_empty()) {
            turn.text = head_of(partial);
        }
        let (spent, cost) = (
            failed.usage.unwrap_or_default(),
            failed.cost_usd.unwrap_or_default(),
        );
        turn.usage = turn.usage.plus(spent);
        turn.cost_usd += cost;
        let (own, model) = (attempt.tries.own.clone(), attempt.model.clone());
        let provider = attempt.provider.clone();
        if failed.remedy == Some(Remedy::Compact) {
            turn.compactions = turn.compactions.saturating_add(1);
        }
        turn.phase = after_failure(attempt, failed, at);
        self.outer.failed((&own, &model), &provider, failed, at);
        self.totals.usage = self.totals.usage.plus(spent);
        self.totals.cost_usd += cost;
        Ok(())
    }

    /// A lost attempt is retried immediately and does not count as a failure.
    pub(crate) fn recovered(&mut self, at: Timestamp) -> Result<(), Refusal> {
        if let Some(turn) = &mut self.turn
            && let Phase::Streaming(last) = &turn.phase
        {
            turn.phase = Phase::BackingOff {
                last: last.clone(),
                failed_at: at,
                retry_at: at,
                class: FailureClass::Transient,
                message: "the daemon stopped while the model answered".to_owned(),
                remedy: None,
            };
        }
        Ok(())
    }

    /// Folds a compaction: a summary replaced the beginning of the conversation. Adds its cost.
    pub(crate) fn compacted(&mut self, compacted: &ContextCompacted) -> Result<(), Refusal> {
        self.forget_told(false);
        self.shortened(false)?;
        self.compaction_asked = false;
        let (usage, cost) = (
            compacted.usage.unwrap_or_default(),
            compacted.cost_usd.unwrap_or_default(),
        );
        self.totals.usage = self.totals.usage.plus(usage);
        self.totals.cost_usd += cost;
        if let Some(turn) = &mut self.turn {
            turn.usage = turn.usage.plus(usage);
            turn.cost_usd += cost;
            turn.compacted = (turn.in_row().saturating_add(1), turn.steps);
        }
        Ok(())
    }

    pub(crate) fn warned(&mut self, raised: &WarningRaised) -> Result<(), Refusal> {
        self.outer.told_unread |= raised.code == cache_watch::UNREAD;
        self.outer.told_unseen |= raised.code == unseen::UNSEEN;
        self.files.warned |= raised.code == checkpoints::FAILED;
        Ok(())
    }

    pub(crate) fn compaction_due(&mut self, due: bool) -> Result<(), Refusal> {
        self.compaction_asked = due;
        self.still_open()
    }

    /// The conversation is shorter now: an attempt that waited for this becomes due.
    pub(crate) fn shortened(&mut self, truncated: bool) -> Result<(), Refusal> {
        self.still_open()?;
        if let Some(warm) = &mut self.outer.warm {
            warm.shortened = true;
        }
        if let Some(turn) = &mut self.turn
            && let Phase::BackingOff { last, remedy, .. } = &mut turn.phase
            && overflow::how(remedy.as_ref()).is_some()
        {
            last.tries.truncated |= truncated;
            *remedy = None;
        }
        Ok(())
    }
}

/// The phase after a failed attempt: a back-off if another attempt follows, else the call has failed.
fn after_failure(attempt: Attempt, failed: &ModelFailed, at: Timestamp) -> Phase {
    let (class, message) = (failed.class, failed.message.clone());
    let Some(retry_at) = failed.retry_at else {
        let model = attempt.model;
        return Phase::GaveUp {
            model,
            class,
            message,
        };
    };
    let mut last = attempt;
    let own_again = last.tries.failed(failed, at);
    last.internal = last.internal.saturating_add(u32::from(choose::is_our_bug(class)));
    last.stutters = last.stutters.saturating_add(u32::from(message == STUTTER));
    match &failed.remedy {
        None => last.failures = last.failures.saturating_add(1),
        Some(Remedy::Fallback { model }) => {
            last.failures = 0;
            last.model.clone_from(model);
        }
        Some(_) if own_again => {
            last.failures = 0;
            last.model.clone_from(&last.tries.own);
        }
        Some(_) => {}
    }
    Phase::BackingOff {
        last,
        failed_at: at,
        retry_at,
        class,
        message,
        remedy: failed.remedy.clone(),
    }
}

fn streaming(turn: &Turn, call: agentd_protocol::CallId, attempt: u32) -> Result<&Attempt, Refusal> {
    match &turn.phase {
        Phase::Streaming(current) if current.call == call && current.attempt == attempt => Ok(current),
        Phase::Streaming(_)
        | Phase::Ready
        | Phase::BackingOff { .. }
        | Phase::GaveUp { .. }
        | Phase::Calling { .. }
        | Phase::Answered { .. }
        | Phase::AtLimit(_) => Err("that attempt does not run"),
    }
}

fn named_calls(content: &[Block]) -> Result<Vec<OpenCall>, Refusal> {
    let mut calls: Vec<OpenCall> = Vec::new();
    for block in content {
        let Block::ToolUse { id, name, input } = block else {
            continue;
        };
        let id: ToolCallId = id.parse().map_err(|_| "a tool call carries a foreign id")?;
        if calls.iter().any(|call| call.id == id) {
            return Err("two tool calls share an id");
        }
        let index = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        calls.push(OpenCall {
            id,
            index,
            name: name.clone(),
            input: Value::clone(input),
            stage: Stage::Named,
            bound: None,
            print: 0,
        });
    }
    Ok(calls)
}

/// The text of an answer, cut to the limit.
fn text_of(content: &[Block]) -> String {
    let mut text = String::new();
    for block in content {
        if let Block::Text { text: piece } = block {
            text.push_str(piece);
        }
        if text.len() > MAX_TEXT_BYTES {
            break;
        }
    }
    head_of(&text)
}

fn head_of(text: &str) -> String {
    text.get(..text.floor_char_boundary(MAX_TEXT_BYTES))
        .unwrap_or_default()
        .to_owned()
}
