//! Approvals: asked, answered once, expired, withdrawn, or denied because no client is attached.

use crate::config::OnExpiry;
use crate::draft::Draft;
use crate::effect::{Effect, Reply};
use crate::input::{CallPlan, TimerKey};
use crate::{planning::plan_mode, steps::limits, timers};
use agentd_protocol::{
    About, ApprovalAsked, ApprovalDecided, ApprovalEscalated, ApprovalId, ApprovalKind, Basis, Choice,
    Decision, Fault, Grant, OpenApproval, Reach, Scope, Timestamp, ToolCallId,
};
use agentd_text::{question_lines, shown};

/// How long to wait before the deciders are counted again.
const RECOUNT_MS: u64 = 5_000;

/// A person's answer to an approval.
#[derive(Debug)]
pub(crate) struct ApprovalAnswer {
    pub(crate) approval: ApprovalId,
    pub(crate) decision: Decision,
    pub(crate) scope: Scope,
    pub(crate) answer: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) basis: Option<Basis>,
}

/// Asks a person for approval of a call.
pub(crate) fn ask(draft: &mut Draft<'_, '_>, tool_call: ToolCallId, plan: &CallPlan) {
    let timeout = draft.durable().limits().ask_timeout_ms;
    let asked = ApprovalAsked {
        approval: draft.stamp().approval(),
        kind: ApprovalKind::Tool,
        tool_call: Some(tool_call),
        title: plan.title.clone(),
        detail: plan.detail.clone(),
        choices: Vec::new(),
        scopes: plan.scopes.clone(),
        expires_at: expiry(draft.now(), timeout),
        grant: plan.grant.clone(),
        binding: plan.binding.clone(),
        about: (*plan.about).clone(),
    };
    draft.emit(asked);
}

/// Passes a call's question to a person; the answer becomes the call's result.
pub(crate) fn ask_person(
    draft: &mut Draft<'_, '_>,
    tool_call: ToolCallId,
    (title, detail): (String, String),
    choices: Vec<Choice>,
) {
    let timeout = draft.durable().limits().ask_timeout_ms;
    let asked = ApprovalAsked {
        approval: draft.stamp().approval(),
        kind: ApprovalKind::Question,
        tool_call: Some(tool_call),
        title,
        detail,
        choices,
        scopes: Vec::new(),
        expires_at: expiry(draft.now(), timeout),
        grant: None,
        binding: None,
        about: About::default(),
    };
    draft.emit(asked);
}

/// The expiry time of a question asked now.
pub(crate) fn expiry(now: Timestamp, timeout_ms: Option<u64>) -> Option<Timestamp> {
    timeout_ms.map(|ms| now.plus_ms(ms))
}

/// Applies a person's answer. The first valid answer wins.
pub(crate) fn decide(draft: &mut Draft<'_, '_>, answer: ApprovalAnswer) -> Result<Reply, Fault> {
    let id = answer.approval;
    let Some(open) = draft.durable().approval(id) else {
        return Err(if draft.durable().decided.contains(&id) {
            Fault::conflict(
                "approval_decided",
                format!("approval {} was decided before", id.short()),
            )
        } else {
            Fault::not_found(
                "unknown_approval",
                format!("this session has no approval {}", id.short()),
            )
        });
    };
    check(open, &answer)?;
    let basis = basis(open, &answer)?;
    let everywhere = answer.scope == Scope::Everywhere && answer.decision == Decision::Allow;
    let always = matches!(answer.scope, Scope::Always | Scope::Everywhere)
        .then(|| rule_of(open.grant.as_deref()?, answer.decision))
        .flatten();
    let always = always.map(|rule| Grant {
        rule,
        reach: reach_of(open, answer.decision, everywhere),
    });
    let scope = match (answer.decision, answer.scope) {
        (Decision::Allow | Decision::Deny, Scope::Everywhere) => Scope::Always,
        (Decision::Allow | Decision::Deny, scope) => scope,
        (Decision::Answer | Decision::Expired | Decision::Withdrawn, _) => Scope::Once,
    };
    let plan = open.kind == ApprovalKind::Plan && answer.decision == Decision::Allow;
    draft.emit_by_caller(ApprovalDecided {
        approval: id,
        decision: answer.decision,
        answer: answer.answer,
        scope,
        everywhere,
        message: answer.message,
        basis,
    });
    if plan {
        plan_mode::leave(draft, id);
    }
    if let Some(grant) = always {
        let by = draft.caller();
        draft.effect(Effect::AddRule {
            grant,
            approval: id,
            by,
        });
    }
    Ok(Reply::Done { seq: 0 })
}

/// The rule that a scoped answer adds: the same call is allowed, or denied, from now on.
pub(crate) fn rule_of(grant: &str, decision: Decision) -> Option<String> {
    let about = grant.trim_start_matches("allow ");
    match decision {
        Decision::Allow => Some(format!("allow {about}")),
        Decision::Deny => Some(format!("deny {about}")),
        Decision::Answer | Decision::Expired | Decision::Withdrawn => None,
    }
}

/// How far the rule of an answer reaches. A denial holds everywhere: it can only restrict.
pub(crate) fn reach_of(open: &OpenApproval, decision: Decision, everywhere: bool) -> Option<Reach> {
    let narrow = decision == Decision::Allow && !everywhere;
    narrow.then(|| open.about.reach.clone()).flatten()
}

/// Whether the answer fits the question.
fn check(open: &OpenApproval, answer: &ApprovalAnswer) -> Result<(), Fault> {
    let fits = match (open.kind, answer.decision) {
        (_, Decision::Expired | Decision::Withdrawn) => false,
        (_, Decision::Deny) => true,
        (ApprovalKind::Tool | ApprovalKind::Plan | ApprovalKind::Limit, Decision::Allow) => true,
        (ApprovalKind::Tool | ApprovalKind::Plan, Decision::Answer)
        | (ApprovalKind::Question, Decision::Allow) => false,
        (ApprovalKind::Question, Decision::Answer) => answer.answer.is_some(),
        (ApprovalKind::Limit, Decision::Answer) => {
            matches!(answer.answer.as_deref(), Some(limits::GO_ON | limits::STOP))
        }
    };
    if !fits {
        let hint = match open.kind {
            ApprovalKind::Tool | ApprovalKind::Plan => "allow or deny it",
            ApprovalKind::Question => "give an answer, or deny it",
            ApprovalKind::Limit => "answer `continue` or `stop`",
        };
        return Err(Fault::invalid("wrong_decision", "the decision does not fit the approval").hint(hint));
    }
    let denied =
        answer.decision == Decision::Deny && open.scopes.contains(&answer.scope) && open.grant.is_some();
    let offered = denied || open.offers(answer.scope);
    let what = match answer.decision {
        Decision::Allow => "this approval cannot be given that far",
        Decision::Deny => "this cannot be denied that far: no rule says just this",
        Decision::Answer | Decision::Expired | Decision::Withdrawn => return Ok(()),
    };
    if !offered {
        return Err(Fault::invalid("scope_not_offered", what).hint("use scope `once`"));
    }
    Ok(())
}

/// What the answer rests on (I7): it is an answer to what the person saw, or a program says that it decides itself.
/// Every way to answer ends here.
fn basis(open: &OpenApproval, answer: &ApprovalAnswer) -> Result<Option<Basis>, Fault> {
    if answer.decision == Decision::Deny {
        return Ok(None);
    }
    match &answer.basis {
        Some(Basis::Policy) => Ok(Some(Basis::Policy)),
        Some(Basis::Shown(hash)) if *hash == shown(&question_lines(open)) => Ok(answer.basis.clone()),
        Some(Basis::Shown(_)) => {
            let message = format!(
                "the question {} is not the one that was shown; nothing was decided",
                open.approval.short()
            );
            Err(Fault::conflict("question_changed", message)
                .hint("look at it again (`agentctl approve`, or `approval.question`), then answer"))
        }
        None => {
            let message = format!(
                "the answer to {} does not say which question was shown; nothing was decided",
                open.approval.short()
            );
            Err(Fault::invalid("question_not_shown", message).hint(
                "show the lines of `approval.question` and send its `shown`, or state `policy: true` if a program decides; an older client needs an update",
            ))
        }
    }
}

/// Handles an approval that has expired.
pub(crate) fn expire(draft: &mut Draft<'_, '_>, approval: ApprovalId) {
    let Some(level) = draft.durable().approval(approval).map(|open| open.level) else {
        return;
    };
    let level = level.saturating_add(1);
    let expires_at = match draft.config().on_expiry {
        OnExpiry::Wait => None,
        OnExpiry::Escalate { levels } if level <= levels => {
            expiry(draft.now(), draft.durable().limits().ask_timeout_ms)
        }
        OnExpiry::Deny | OnExpiry::Escalate { .. } => return close(draft, approval, Decision::Expired, None),
    };
    draft.emit(ApprovalEscalated {
        approval,
        level,
        expires_at,
    });
}

/// Handles the number of attached deciders.
pub(crate) fn counted(draft: &mut Draft<'_, '_>, approval: ApprovalId, count: u32) {
    if draft.durable().approval(approval).is_none() {
        return;
    }
    if count == 0 {
        let why = "nobody is attached who may decide".to_owned();
        close(draft, approval, Decision::Deny, Some(why));
    } else if !draft.seen().draining {
        timers::set(draft, TimerKey::Unattended(approval), RECOUNT_MS);
    }
}

/// Withdraws an approval because the turn ends and needs no answer any more.
pub(crate) fn withdraw(draft: &mut Draft<'_, '_>, approval: ApprovalId) {
    close(draft, approval, Decision::Withdrawn, None);
}

fn close(draft: &mut Draft<'_, '_>, approval: ApprovalId, decision: Decision, message: Option<String>) {
    if draft.durable().approval(approval).is_some() {
        draft.emit(ApprovalDecided {
            approval,
            decision,
            answer: None,
            scope: Scope::Once,
            everywhere: false,
            message,
            basis: None,
        });
    }
}
