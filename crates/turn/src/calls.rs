//! The open calls of a step: what is denied is closed, what is allowed runs when its place has come.

use crate::draft::Draft;
use crate::durable::{Durable, Phase};
use crate::effect::Effect;
use crate::input::CallPlan;
use crate::open_call::Stage;
use crate::volatile::Volatile;
use crate::{ending, judging, talk, words};
use agentd_protocol::{EffectClass, ToolCallId, ToolFinished, ToolOutcome, ToolStarted, ToolStatus};
use std::collections::BTreeMap;

/// The word for programs in the result of a call that may not run.
const DENIED: &str = "E_POLICY";

/// Takes the step's calls as far as they go. True when the step is over.
pub(crate) fn advance(draft: &mut Draft<'_, '_>) -> bool {
    close_decided(draft);
    if draft.turn().is_some_and(|turn| turn.denied) {
        ending::close_calls(draft, words::STOPPED_BY_DENIAL);
    }
    if !matches!(draft.turn().map(|turn| &turn.phase), Some(Phase::Calling { .. })) {
        return true;
    }
    if !draft.seen().draining {
        judge_planless(draft);
        let mut closed = false;
        for id in startable(draft.durable(), draft.seen()) {
            closed |= start(draft, id);
        }
        return closed;
    }
    false
}

/// A running call has its result. A result of a call that was closed meanwhile is dropped: its kid was killed.
pub(crate) fn ended(draft: &mut Draft<'_, '_>, tool_call: ToolCallId, outcome: ToolOutcome) {
    if draft.volatile().running.remove(&tool_call) {
        draft.emit(ToolFinished { tool_call, outcome });
    }
}

/// The result of a call that may not run.
pub(crate) fn denied(text: String) -> ToolOutcome {
    ToolOutcome::text(ToolStatus::Denied, text).coded(DENIED)
}

/// What was denied, and questions that were answered.
fn close_decided(draft: &mut Draft<'_, '_>) {
    let decided: Vec<_> = draft
        .durable()
        .open_calls()
        .filter_map(|call| match &call.stage {
            Stage::Denied(text) => Some((call.id, denied(text.clone()))),
            Stage::Answered(text) => Some((call.id, ToolOutcome::text(ToolStatus::Ok, text.clone()))),
            Stage::Named
            | Stage::Proposed
            | Stage::ToAsk
            | Stage::Asking(_)
            | Stage::Allowed
            | Stage::Running(_)
            | Stage::Closed(_) => None,
        })
        .collect();
    for (tool_call, outcome) in decided {
        draft.emit(ToolFinished { tool_call, outcome });
    }
}

/// After a restart the plans are gone: calls that are to run, or to be asked about, are prepared and judged again.
fn judge_planless(draft: &mut Draft<'_, '_>) {
    let planless: Vec<_> = draft
        .durable()
        .open_calls()
        .filter(|call| {
            matches!(
                call.stage,
                Stage::Named | Stage::Proposed | Stage::ToAsk | Stage::Allowed
            )
        })
        .filter(|call| !draft.seen().plans.contains_key(&call.id) && !draft.seen().pending.contains(&call.id))
        .map(|call| (call.id, call.name.clone(), call.input.clone()))
        .collect();
    for (id, name, input) in planless {
        judging::request(draft, id, name, input);
    }
}

/// The calls whose place has come: adjacent reads together, anything else alone after everything before it.
fn startable(durable: &Durable, volatile: &Volatile) -> Vec<ToolCallId> {
    let Some(turn) = &durable.turn else {
        return Vec::new();
    };
    let most = durable.limits().max_parallel_tools.max(1);
    let (mut reads, mut open_before, mut ready) = (0, false, Vec::new());
    for call in turn.calls.iter().filter(|call| call.is_open()) {
        let effect = match &call.stage {
            Stage::Running(started) => Some(started.effect),
            Stage::Named
            | Stage::Proposed
            | Stage::ToAsk
            | Stage::Asking(_)
            | Stage::Allowed
            | Stage::Denied(_)
            | Stage::Answered(_)
            | Stage::Closed(_) => effect_of(&volatile.plans, call.id),
        };
        let reads_only = effect == Some(EffectClass::Read);
        if call.stage == Stage::Allowed && effect.is_some() && (reads_only || !open_before) && reads < most {
            ready.push(call.id);
            reads += 1;
        } else if call.is_running() {
            reads += 1;
        }
        if !reads_only {
            break;
        }
        open_before = true;
    }
    ready
}

fn effect_of(plans: &BTreeMap<ToolCallId, CallPlan>, id: ToolCallId) -> Option<EffectClass> {
    plans.get(&id).map(|plan| plan.effect)
}

/// Starts a call. True when it may have its result already, so that others may start.
fn start(draft: &mut Draft<'_, '_>, tool_call: ToolCallId) -> bool {
    let Some(plan) = draft.volatile().plans.remove(&tool_call) else {
        return false;
    };
    let CallPlan {
        title,
        effect,
        idempotent,
        sandbox,
        talk,
        ..
    } = plan;
    if let Some(talk) = talk {
        talk::start(draft, tool_call, title, talk);
        return true;
    }
    draft.emit(ToolStarted {
        tool_call,
        title,
        effect,
        sandbox,
        idempotent,
    });
    run(draft, tool_call, effect, sandbox);
    false
}

/// Has a started call run.
pub(crate) fn run(
    draft: &mut Draft<'_, '_>,
    tool_call: ToolCallId,
    effect: EffectClass,
    sandbox: agentd_protocol::SandboxLevel,
) {
    let Some(call) = draft.durable().call(tool_call) else {
        return;
    };
    let (name, input) = (call.name.clone(), call.input.clone());
    draft.volatile().running.insert(tool_call);
    draft.effect(Effect::RunTool {
        tool_call,
        name,
        input,
        effect,
        sandbox,
    });
}
