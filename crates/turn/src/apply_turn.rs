//! Folding the facts of a turn: model calls, limits, notes, the end.

use crate::apply::Refusal;
use crate::durable::{Attempt, Durable, LastTurn, MAX_TEXT_BYTES, Phase, Turn};
use crate::guards::{Guards, STUTTER};
use crate::limits::action;
use crate::open_call::{OpenCall, Stage};
use agentd_protocol::{
    Block, FailureClass, LoopLimits, ModelFailed, ModelFinished, ModelStarted, NoteKind, Timestamp,
    ToolCallId, TurnFinished, TurnId, TurnStarted, Usage,
};
use serde_json::Value;

impl Durable {
    pub(crate) fn running_turn(&mut self) -> Result<&mut Turn, Refusal> {
        self.turn.as_mut().ok_or("no turn runs")
    }

    /// The loop's settings; the defaults before the session exists.
    #[must_use]
    pub fn limits(&self) -> LoopLimits {
        self.settings
            .as_ref()
            .map(|settings| settings.limits.clone())
            .unwrap_or_default()
    }

    pub(crate) fn turn_started(
        &mut self,
        started: &TurnStarted,
        id: Option<TurnId>,
        at: Timestamp,
    ) -> Result<(), Refusal> {
        self.still_open()?;
        let id = id.ok_or("the envelope names no turn")?;
        if self.turn.is_some() {
            return Err("another turn runs");
        }
        if started.inputs.iter().any(|input| self.waiting(*input).is_none()) {
            return Err("it starts with an input that does not wait");
        }
        let mut model = None;
        for waiting in &mut self.inbox {
            if started.inputs.contains(&waiting.queued.input) {
                waiting.taken = true;
                model = waiting.model.take().or(model);
            }
        }
        self.turn = Some(Turn {
            id,
            started_at: at,
            model,
            steps: 0,
            steps_granted: 0,
            tool_calls: 0,
            usage: Usage::default(),
            cost_usd: 0.0,
            text: String::new(),
            phase: Phase::Ready,
            calls: Vec::new(),
            denied: false,
            summarizing: false,
            stopped_at_limit: false,
            guards: Guards::default(),
        });
        Ok(())
    }

    pub(crate) fn model_started(&mut self, started: &ModelStarted, at: Timestamp) -> Result<(), Refusal> {
        if started.inputs.iter().any(|input| self.waiting(*input).is_none()) {
            return Err("an input joins that does not wait");
        }
        let turn = self.running_turn()?;
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
        let (failures, internal, stutters) =
            last.map_or((0, 0, 0), |last| (last.failures, last.internal, last.stutters));
        turn.phase = Phase::Streaming(Attempt {
            call: started.call,
            attempt: started.attempt,
            step: started.step,
            started_at: at,
            tools_off: started.tools_off,
            failures,
            internal,
            stutters,
        });
        turn.calls.clear();
        if fresh {
            turn.steps = turn.steps.saturating_add(1);
            self.totals.steps = self.totals.steps.saturating_add(1);
        }
        self.leave_inbox(&started.inputs);
        Ok(())
    }

    pub(crate) fn model_finished(&mut self, finished: &ModelFinished) -> Result<(), Refusal> {
        let turn = self.running_turn()?;
        streaming(turn, finished.call, finished.attempt)?;
        let calls = named_calls(&finished.content)?;
        let text = text_of(&finished.content);
        if !text.is_empty() {
            turn.text = text;
        }
        let stop = finished.stop_reason;
        turn.phase = match calls.is_empty() {
            true => Phase::Answered { stop, called: false },
            false => Phase::Calling { stop },
        };
        turn.calls = calls;
        turn.usage = turn.usage.plus(finished.usage);
        let cost = finished.cost_usd.unwrap_or_default();
        turn.cost_usd += cost;
        self.totals.usage = self.totals.usage.plus(finished.usage);
        self.totals.cost_usd += cost;
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
        let (class, message) = (failed.class, failed.message.clone());
        turn.phase = match failed.retry_at {
            None => Phase::GaveUp { class, message },
            Some(retry_at) => {
                let last = Attempt {
                    failures: attempt.failures.saturating_add(1),
                    internal: attempt
                        .internal
                        .saturating_add(u32::from(crate::attempts::is_our_bug(class))),
                    stutters: attempt.stutters.saturating_add(u32::from(message == STUTTER)),
                    ..attempt
                };
                Phase::BackingOff {
                    last,
                    failed_at: at,
                    retry_at,
                    class,
                    message,
                }
            }
        };
        self.totals.usage = self.totals.usage.plus(spent);
        self.totals.cost_usd += cost;
        Ok(())
    }

    /// A lost attempt is due for a retry at once, and is no failure.
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
            };
        }
        Ok(())
    }

    pub(crate) fn limit_reached(&mut self, what: &str) -> Result<(), Refusal> {
        match what {
            action::WARN => self.budget_warned = true,
            action::SUMMARIZE => self.running_turn()?.summarizing = true,
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn note_injected(&mut self, kind: NoteKind) -> Result<(), Refusal> {
        let limits = self.limits();
        if let Some(turn) = &mut self.turn {
            match kind {
                NoteKind::IntentNudge => turn.guards.nudges = turn.guards.nudges.saturating_add(1),
                NoteKind::Guard => turn.guards.told(&limits),
                NoteKind::PlanReminder | NoteKind::HookContext | NoteKind::LimitNotice => {}
            }
        }
        Ok(())
    }

    pub(crate) fn turn_finished(&mut self, finished: &TurnFinished, at: Timestamp) -> Result<(), Refusal> {
        let turn = self.running_turn()?;
        if turn.calls.iter().any(OpenCall::is_open) {
            return Err("a tool call is unanswered (I3)");
        }
        if matches!(turn.phase, Phase::Streaming(_)) {
            return Err("the model still answers");
        }
        if !self.approvals.is_empty() {
            return Err("an approval is open");
        }
        self.turn = None;
        self.last = Some(LastTurn {
            at,
            reason: finished.reason,
            error: finished.error.clone(),
        });
        Ok(())
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
        });
    }
    Ok(calls)
}

/// The text blocks of an answer, bounded.
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
