//! The open calls of a step: denied calls are closed, allowed calls start in the model's order.

pub(crate) mod approvals;
pub(crate) mod call_hooks;
pub(crate) mod jobs;
pub(crate) mod judging;
pub(crate) mod loop_requests;
pub(crate) mod open_call;

use crate::calls::loop_requests::LoopRequest;
use crate::calls::open_call::{OpenCall, Stage};
use crate::draft::Draft;
use crate::durable::{Durable, Phase};
use crate::effect::Effect;
use crate::input::CallPlan;
use crate::questions::Subject;
use crate::volatile::Volatile;
use crate::{Config, checkpoints, steps::ending, tree::delegate, words};
use agentd_protocol::{EffectClass, ToolCallId, ToolFinished, ToolOutcome, ToolStarted, ToolStatus};
use std::collections::BTreeMap;

/// The machine-readable code in the result of a denied call.
const DENIED: &str = "E_POLICY";

/// Advances the step's calls as far as possible. True when the step is over.
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
        for id in startable(draft.durable(), draft.seen(), draft.config()) {
            closed |= start(draft, id);
        }
        return closed;
    }
    false
}

/// Handles a call's result. The result of a call that was closed earlier is dropped: its worker was killed.
pub(crate) fn ended(draft: &mut Draft<'_, '_>, tool_call: ToolCallId, outcome: ToolOutcome) {
    if draft.volatile().running.remove(&tool_call) {
        draft.emit(ToolFinished { tool_call, outcome });
    }
}

/// The result of a denied call.
pub(crate) fn denied(text: String) -> ToolOutcome {
    ToolOutcome::text(ToolStatus::Denied, text).coded(DENIED)
}

/// Closes denied calls and answered questions.
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

/// Plans do not survive a restart: calls that are still to run, or to be asked about, are prepared and judged again.
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
        .filter(|call| {
            !draft.seen().plans.contains_key(&call.id)
                && !draft.seen().questions.is_pending(&Subject::Verdict(call.id))
        })
        .map(|call| (call.id, call.name.clone(), call.input.clone()))
        .collect();
    for (id, name, input) in planless {
        judging::request(draft, id, name, input);
    }
}

/// Which calls may run in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Subagent,
    Alone,
}

/// The calls that may start now: adjacent reads together, adjacent sub-agents together, any other call alone, after
/// everything before it.
fn startable(durable: &Durable, volatile: &Volatile, config: &Config) -> Vec<ToolCallId> {
    let Some(turn) = &durable.turn else {
        return Vec::new();
    };
    let mut group = None;
    let unrecorded = checkpoints::comes_first(durable, volatile, config);
    let (mut taken, mut ready) = (0, Vec::new());
    for call in turn.calls.iter().filter(|call| call.is_open()) {
        let kind = kind_of(durable, &volatile.plans, call);
        match group {
            Some(group) if group != kind || kind == Kind::Alone => break,
            Some(_) => {}
            None => {
                group = Some(kind);
                taken = open_before(durable, kind);
            }
        }
        let most = match kind {
            Kind::Read => durable.limits().max_parallel_tools.max(1),
            Kind::Subagent => config.max_children.max(1),
            Kind::Alone => 1,
        };
        let plan = volatile.plans.get(&call.id);
        // The files are recorded before anything may change them.
        let waits = unrecorded
            && plan.is_some_and(|plan| kind == Kind::Subagent || checkpoints::touches(plan.effect));
        if call.stage == Stage::Allowed && plan.is_some() && taken < most && !waits {
            ready.push(call.id);
            taken += 1;
        } else if call.is_running() && kind != Kind::Subagent {
            taken += 1;
        }
    }
    ready
}

/// The number that have not ended, including those whose calls were already closed.
fn open_before(durable: &Durable, kind: Kind) -> u32 {
    match kind {
        Kind::Subagent => u32::try_from(durable.children.len()).unwrap_or(u32::MAX),
        Kind::Read | Kind::Alone => 0,
    }
}

fn kind_of(durable: &Durable, plans: &BTreeMap<ToolCallId, Box<CallPlan>>, call: &OpenCall) -> Kind {
    let of = |effect| {
        if effect == EffectClass::Read {
            Kind::Read
        } else {
            Kind::Alone
        }
    };
    match &call.stage {
        Stage::Running(_) if delegate::is_child(durable, call) => Kind::Subagent,
        Stage::Running(started) => of(started.effect),
        Stage::Named
        | Stage::Proposed
        | Stage::ToAsk
        | Stage::Asking(_)
        | Stage::Allowed
        | Stage::Denied(_)
        | Stage::Answered(_)
        | Stage::Closed(_) => match plans.get(&call.id) {
            Some(plan) if matches!(plan.loop_request, Some(LoopRequest::Delegate(_))) => Kind::Subagent,
            Some(plan) => of(plan.effect),
            None => Kind::Alone,
        },
    }
}

/// Starts a call. True when it may already have a result, so that others may start.
fn start(draft: &mut Draft<'_, '_>, tool_call: ToolCallId) -> bool {
    let Some(plan) = draft.volatile().plans.remove(&tool_call) else {
        return false;
    };
    if checkpoints::touches(plan.effect) || matches!(plan.loop_request, Some(LoopRequest::Delegate(_))) {
        checkpoints::record(draft);
    }
    let CallPlan {
        title,
        effect,
        idempotent,
        sandbox,
        loop_request,
        ..
    } = *plan;
    if let Some(loop_request) = loop_request {
        loop_requests::start(draft, tool_call, title, sandbox, loop_request);
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

/// Starts the worker of a call.
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
