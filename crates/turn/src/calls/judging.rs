//! From a requested call to a verdict: all calls of an answer are judged before any of it is recorded.

use crate::calls::open_call::Stage;
use crate::draft::Draft;
use crate::input::{CallPlan, Judged};
use crate::questions::{self, Question};
use crate::volatile::{Ruling, UnrecordedAnswer};
use crate::{
    attempts,
    calls::{approvals, call_hooks},
    checkpoints,
};
use agentd_protocol::{
    Block, CHANGED_RULE, EventBody, ToolCallId, ToolFinished, ToolOutcome, ToolProposed, Verdict,
    VerdictGiven, VerdictKind,
};
use serde_json::Value;

/// Sends all calls of an answer to the gate.
pub(crate) fn begin(draft: &mut Draft<'_, '_>, answer: UnrecordedAnswer) {
    let calls: Vec<_> = calls_of(&answer)
        .map(|(id, name, input)| (id, name.to_owned(), input.clone()))
        .collect();
    draft.volatile().answer = Some(answer);
    for (id, name, input) in calls {
        request(draft, id, name, input);
    }
}

/// Sends a call to the gate.
pub(crate) fn request(draft: &mut Draft<'_, '_>, tool_call: ToolCallId, name: String, input: Value) {
    let grants = draft.durable().grants.clone();
    let question = Question::Verdict {
        tool_call,
        name,
        input,
        grants,
    };
    questions::ask(draft, question);
}

/// Handles the gate's verdict, or a call that could not be prepared.
pub(crate) fn judged(draft: &mut Draft<'_, '_>, id: ToolCallId, judged: Judged) {
    let ruling = match judged {
        Judged::Verdict { verdict, plan } => Ruling::Verdict(verdict, Some(plan)),
        Judged::Refused(outcome) => Ruling::Refused(outcome),
    };
    ruled(draft, id, ruling);
}

/// The gate did not answer: the call is denied (I7).
pub(crate) fn not_judged(draft: &mut Draft<'_, '_>, id: ToolCallId) {
    let verdict = Verdict {
        kind: VerdictKind::Deny,
        rule: "gate:timeout".to_owned(),
        reason: "the permission gate did not answer in time".to_owned(),
    };
    ruled(draft, id, Ruling::Verdict(verdict, None));
}

fn ruled(draft: &mut Draft<'_, '_>, id: ToolCallId, ruling: Ruling) {
    match &mut draft.volatile().answer {
        Some(answer) => {
            answer.rulings.insert(id, Box::new(ruling));
            go_on(draft);
        }
        None => rule_again(draft, id, ruling),
    }
}

/// Records an answer when all its calls are judged. One whose calls may change files also waits until the files are
/// recorded: the call, its verdict and the files before it belong in one append.
pub(crate) fn go_on(draft: &mut Draft<'_, '_>) {
    let Some(answer) = &draft.seen().answer else {
        return;
    };
    let complete = calls_of(answer).all(|(id, ..)| answer.rulings.contains_key(&id));
    let touches = answer.rulings.values().any(|ruling| match &**ruling {
        Ruling::Verdict(verdict, Some(plan)) => {
            verdict.kind == VerdictKind::Allow && checkpoints::touches(plan.effect)
        }
        Ruling::Verdict(_, None) | Ruling::Refused(_) => false,
    });
    let waits = touches && checkpoints::comes_first(draft.durable(), draft.seen(), draft.config());
    if complete
        && !waits
        && let Some(answer) = draft.volatile().answer.take()
    {
        commit(draft, answer);
    }
}

/// Records the answer, its calls and their verdicts in one append.
fn commit(draft: &mut Draft<'_, '_>, mut answer: UnrecordedAnswer) {
    let rulings = std::mem::take(&mut answer.rulings);
    attempts::record(draft, answer);
    propose_all(draft);
    let (mut asks, mut refused) = (Vec::new(), Vec::new());
    let order: Vec<_> = draft.durable().open_calls().map(|call| call.id).collect();
    let mut rulings = rulings;
    for id in order {
        call_hooks::write_waiting(draft, id);
        match rulings.remove(&id).map(|ruling| *ruling) {
            Some(Ruling::Verdict(verdict, plan)) => {
                asks.extend(give(draft, id, verdict, plan));
            }
            Some(Ruling::Refused(outcome)) => refused.push((id, outcome)),
            None => {}
        }
    }
    for (id, plan) in asks {
        approvals::ask(draft, id, &plan);
    }
    for (tool_call, outcome) in refused {
        draft.emit(ToolFinished { tool_call, outcome });
    }
}

/// Records the calls that the model requested, unless they already are in the log.
pub(crate) fn propose_all(draft: &mut Draft<'_, '_>) {
    let named: Vec<EventBody> = draft
        .durable()
        .open_calls()
        .filter(|call| call.stage == Stage::Named)
        .map(|call| {
            let (name, input) = (call.name.clone(), call.input.clone());
            ToolProposed {
                tool_call: call.id,
                name,
                input,
                index: call.index,
            }
            .into()
        })
        .collect();
    for proposed in named {
        draft.emit(proposed);
    }
}

/// Records a verdict; returns the call if a person must be asked about it.
fn give(
    draft: &mut Draft<'_, '_>,
    id: ToolCallId,
    verdict: Verdict,
    plan: Option<CallPlan>,
) -> Option<(ToolCallId, CallPlan)> {
    let verdict = match plan {
        // Without a plan, the effect of the call is unknown, so it is denied (I7).
        None if verdict.kind != VerdictKind::Deny => Verdict {
            kind: VerdictKind::Deny,
            ..verdict
        },
        _ => verdict,
    };
    let kind = verdict.kind;
    draft.emit(VerdictGiven {
        tool_call: id,
        verdict,
    });
    let plan = plan.filter(|_| kind != VerdictKind::Deny)?;
    let asked = (kind == VerdictKind::Ask).then(|| (id, plan.clone()));
    draft.volatile().plans.insert(id, Box::new(plan));
    asked
}

/// A call from an earlier incarnation was judged again because its plan was lost. Earlier decisions by people and rules
/// stand, unless the call is denied now.
fn rule_again(draft: &mut Draft<'_, '_>, id: ToolCallId, ruling: Ruling) {
    propose_all(draft);
    let Some(stage) = draft.durable().call(id).map(|call| call.stage.clone()) else {
        return;
    };
    match (stage, ruling) {
        (Stage::Proposed | Stage::ToAsk | Stage::Allowed, Ruling::Refused(outcome)) => {
            finish(draft, id, outcome);
        }
        (Stage::Proposed, Ruling::Verdict(verdict, plan)) => {
            if let Some((id, plan)) = give(draft, id, verdict, plan) {
                approvals::ask(draft, id, &plan);
            }
        }
        (Stage::ToAsk | Stage::Allowed, Ruling::Verdict(verdict, None)) => {
            give(draft, id, verdict, None);
        }
        (Stage::ToAsk | Stage::Allowed, Ruling::Verdict(verdict, plan))
            if verdict.kind == VerdictKind::Deny =>
        {
            give(draft, id, verdict, plan);
        }
        // A grant allowed it, and no longer does; what a person approved is compared before it runs.
        (Stage::Allowed, Ruling::Verdict(verdict, plan))
            if verdict.rule == CHANGED_RULE && draft.durable().bound(id).is_none() =>
        {
            let kind = VerdictKind::Deny;
            give(draft, id, Verdict { kind, ..verdict }, plan);
        }
        (Stage::ToAsk, Ruling::Verdict(_, Some(plan))) => {
            draft.volatile().plans.insert(id, Box::new(plan.clone()));
            approvals::ask(draft, id, &plan);
        }
        (Stage::Allowed, Ruling::Verdict(_, Some(plan))) => {
            draft.volatile().plans.insert(id, Box::new(plan));
        }
        (
            Stage::Named
            | Stage::Asking(_)
            | Stage::Denied(_)
            | Stage::Answered(_)
            | Stage::Running(_)
            | Stage::Closed(_),
            _,
        ) => {}
    }
}

fn finish(draft: &mut Draft<'_, '_>, tool_call: ToolCallId, outcome: ToolOutcome) {
    draft.emit(ToolFinished { tool_call, outcome });
}

/// The calls of an answer, with our ids.
fn calls_of(answer: &UnrecordedAnswer) -> impl Iterator<Item = (ToolCallId, &str, &Value)> {
    answer.answer.content.iter().filter_map(|block| match block {
        Block::ToolUse { id, name, input } => Some((id.parse().ok()?, name.as_str(), input)),
        _ => None,
    })
}
