//! Folding the facts of tool calls and approvals.

use crate::calls::approvals::{reach_of, rule_of};
use crate::calls::open_call::{OpenCall, Stage, Started};
use crate::durable::apply::{Refusal, remember};
use crate::durable::{Durable, Phase, Turn};
use crate::steps::guards::print_of;
use crate::steps::limits::GO_ON;
use crate::{checkpoints, words};
use agentd_protocol::{
    ApprovalAsked, ApprovalDecided, ApprovalEscalated, ApprovalKind, Decision, Grant, LoopLimits, OnDeny,
    OpenApproval, Scope, Seq, Timestamp, ToolCallId, ToolFinished, ToolProposed, ToolStarted, ToolStatus,
    VerdictGiven, VerdictKind,
};
use serde_json::Value;

impl Turn {
    pub(crate) fn call_mut(&mut self, id: ToolCallId) -> Result<&mut OpenCall, Refusal> {
        self.calls
            .iter_mut()
            .find(|call| call.id == id)
            .ok_or("the model asked for no such call")
    }

    fn deny(&mut self, id: ToolCallId, text: String, on_deny: OnDeny) -> Result<(), Refusal> {
        self.call_mut(id)?.stage = Stage::Denied(text);
        self.denied |= on_deny == OnDeny::Stop;
        Ok(())
    }

    /// Ends the step when its last call has a result.
    fn settle(&mut self) {
        let Phase::Calling { stop } = self.phase else {
            return;
        };
        if self.calls.iter().any(OpenCall::is_open) {
            return;
        }
        let any = |status| self.calls.iter().any(|call| call.stage == Stage::Closed(status));
        let (any_ok, any_denied) = (any(ToolStatus::Ok), any(ToolStatus::Denied));
        let prints = self.calls.iter().map(|call| call.print);
        self.guards.step(any_ok, any_denied, prints);
        self.phase = Phase::Answered { stop, called: true };
    }
}

impl Durable {
    pub(crate) fn tool_proposed(&mut self, proposed: &ToolProposed) -> Result<(), Refusal> {
        let turn = self.running_turn()?;
        let call = turn.call_mut(proposed.tool_call)?;
        if call.stage != Stage::Named {
            return Err("the call was proposed before");
        }
        call.stage = Stage::Proposed;
        turn.tool_calls = turn.tool_calls.saturating_add(1);
        turn.guards.called(&proposed.name, &proposed.input);
        self.totals.tool_calls = self.totals.tool_calls.saturating_add(1);
        Ok(())
    }

    pub(crate) fn verdict_given(&mut self, given: &VerdictGiven) -> Result<(), Refusal> {
        let on_deny = self.limits().on_deny;
        let turn = self.running_turn()?;
        let call = turn.call_mut(given.tool_call)?;
        match (&call.stage, given.verdict.kind) {
            (Stage::Proposed | Stage::ToAsk | Stage::Allowed, VerdictKind::Deny) => {
                turn.deny(given.tool_call, words::denied_by_rule(&given.verdict), on_deny)
            }
            (Stage::Proposed, VerdictKind::Allow) => {
                call.stage = Stage::Allowed;
                Ok(())
            }
            (Stage::Proposed, VerdictKind::Ask) => {
                call.stage = Stage::ToAsk;
                Ok(())
            }
            _ => Err("the call does not wait for a verdict"),
        }
    }

    pub(crate) fn approval_asked(&mut self, asked: &ApprovalAsked, at: Timestamp) -> Result<(), Refusal> {
        if self.approval(asked.approval).is_some() || self.decided.contains(&asked.approval) {
            return Err("the approval was asked before");
        }
        let turn = self.running_turn()?;
        let mut tool = None;
        match (asked.kind, asked.tool_call) {
            (ApprovalKind::Limit, _) => {
                if !matches!(turn.phase, Phase::Ready | Phase::Answered { .. }) {
                    return Err("the turn is not between two steps");
                }
                turn.phase = Phase::AtLimit(asked.approval);
            }
            (ApprovalKind::Tool, Some(id)) => {
                let call = turn.call_mut(id)?;
                if call.stage != Stage::ToAsk {
                    return Err("no verdict says that the call is to be asked about");
                }
                call.stage = Stage::Asking(asked.approval);
                call.bound.clone_from(&asked.binding);
                tool = Some(call.name.clone());
            }
            (ApprovalKind::Question | ApprovalKind::Plan, Some(id)) => {
                let call = turn.call_mut(id)?;
                if call.stage != Stage::Allowed {
                    return Err("the call that asks was not allowed");
                }
                call.stage = Stage::Asking(asked.approval);
                tool = Some(call.name.clone());
            }
            (ApprovalKind::Tool, None) => return Err("it names no call"),
            (ApprovalKind::Plan | ApprovalKind::Question, None) => {}
        }
        self.approvals.push(OpenApproval {
            tool,
            root: self.lineage().map(|(_, lineage)| lineage.root),
            path: self.path(),
            ..OpenApproval::asked(asked, self.session, at)
        });
        Ok(())
    }

    pub(crate) fn approval_escalated(&mut self, escalated: &ApprovalEscalated) -> Result<(), Refusal> {
        let open = self
            .approvals
            .iter_mut()
            .find(|open| open.approval == escalated.approval)
            .ok_or("the approval is not open")?;
        open.level = escalated.level;
        open.expires_at = escalated.expires_at;
        Ok(())
    }

    pub(crate) fn approval_decided(&mut self, decided: &ApprovalDecided) -> Result<(), Refusal> {
        let open = self
            .approval(decided.approval)
            .ok_or("the approval is not open")?
            .clone();
        let limits = self.limits();
        match (open.kind, open.tool_call) {
            (ApprovalKind::Tool, Some(call)) => self.call_decided(call, decided, &limits)?,
            (ApprovalKind::Limit, _) => {
                let turn = self.running_turn()?;
                turn.phase = Phase::Ready;
                match limit_answer(decided) {
                    true => turn.steps_granted = turn.steps,
                    false => turn.stopped_at_limit = decided.decision != Decision::Withdrawn,
                }
            }
            (ApprovalKind::Question, Some(call)) => self.question_decided(call, &open, decided)?,
            (ApprovalKind::Plan, Some(call)) => self.plan_decided(call, &open, decided)?,
            (ApprovalKind::Tool | ApprovalKind::Plan | ApprovalKind::Question, _) => {}
        }
        let rule = match decided.decision {
            Decision::Allow => open.grant.clone(),
            _ => open
                .grant
                .as_deref()
                .and_then(|grant| rule_of(grant, decided.decision)),
        };
        if let Some(rule) = rule {
            let everywhere = decided.everywhere || decided.scope == Scope::Everywhere;
            let reach = reach_of(&open, decided.decision, everywhere);
            self.granted(Grant { rule, reach }, decided.scope);
        }
        self.approvals.retain(|other| other.approval != decided.approval);
        remember(&mut self.decided, decided.approval);
        Ok(())
    }

    fn granted(&mut self, grant: Grant, scope: Scope) {
        let known = self.grants.contains(&grant);
        match scope {
            Scope::Once => return,
            Scope::Session => self.always.retain(|always| *always != grant),
            Scope::Always | Scope::Everywhere if known => {}
            Scope::Always | Scope::Everywhere => self.always.push(grant.clone()),
        }
        if !known {
            self.grants.push(grant);
        }
    }

    fn call_decided(
        &mut self,
        id: ToolCallId,
        decided: &ApprovalDecided,
        limits: &LoopLimits,
    ) -> Result<(), Refusal> {
        let turn = self.running_turn()?;
        let call = turn.call_mut(id)?;
        if call.stage != Stage::Asking(decided.approval) {
            return Err("the call does not wait for this approval");
        }
        match decided.decision {
            Decision::Allow => call.stage = Stage::Allowed,
            Decision::Withdrawn => call.stage = Stage::ToAsk,
            Decision::Deny | Decision::Expired => {
                turn.deny(id, words::denied_by_person(decided), limits.on_deny)?;
            }
            Decision::Answer => return Err("a call is allowed or denied, not answered"),
        }
        Ok(())
    }

    pub(crate) fn tool_started(&mut self, started: &ToolStarted, at: Timestamp) -> Result<(), Refusal> {
        let call = self.running_turn()?.call_mut(started.tool_call)?;
        let again = matches!(&call.stage, Stage::Running(before) if before.idempotent);
        if call.stage != Stage::Allowed && !again {
            return Err("the call was not allowed, or runs already (I4)");
        }
        call.stage = Stage::Running(Started {
            at,
            title: started.title.clone(),
            effect: started.effect,
            sandbox: started.sandbox,
            idempotent: started.idempotent,
        });
        Ok(())
    }

    pub(crate) fn tool_finished(&mut self, finished: &ToolFinished, seq: Seq) -> Result<(), Refusal> {
        let turn = self.running_turn()?;
        let call = turn.call_mut(finished.tool_call)?;
        match call.stage {
            Stage::Closed(_) => return Err("the call has its result (I3)"),
            Stage::Named => return Err("the call was not proposed"),
            Stage::Asking(_) => return Err("the call's approval is open"),
            Stage::Proposed
            | Stage::ToAsk
            | Stage::Allowed
            | Stage::Denied(_)
            | Stage::Answered(_)
            | Stage::Running(_) => {}
        }
        let touched = matches!(&call.stage, Stage::Running(started) if checkpoints::touches(started.effect));
        call.print = print_of(&call.name, &call.input, &finished.outcome);
        call.stage = Stage::Closed(finished.outcome.status);
        call.name = String::new();
        call.input = Value::Null;
        call.bound = None;
        turn.settle();
        self.outer.told_unseen &= finished.outcome.media.is_empty();
        if touched {
            self.files.touched = seq;
        }
        Ok(())
    }
}

/// Whether the answer to a limit approval means "go on".
fn limit_answer(decided: &ApprovalDecided) -> bool {
    match decided.decision {
        Decision::Allow => true,
        Decision::Answer => decided.answer.as_deref() == Some(GO_ON),
        Decision::Deny | Decision::Expired | Decision::Withdrawn => false,
    }
}
