//! How an agent leaves plan mode: a person reads the plan and approves it, or says what to change.

use crate::calls::approvals;
use crate::calls::open_call::Stage;
use crate::draft::Draft;
use crate::durable::Durable;
use crate::durable::apply::Refusal;
use crate::words;
use agentd_protocol::{
    About, ApprovalAsked, ApprovalDecided, ApprovalId, ApprovalKind, Decision, ModeChanged, OpenApproval,
    PermissionMode, SessionUpdated, ToolCallId, ToolFinished, ToolOutcome, ToolStatus,
};

/// Shows a plan to a person; the answer becomes the call's result.
pub(crate) fn ask(draft: &mut Draft<'_, '_>, tool_call: ToolCallId, title: String, plan: String) {
    if draft.durable().mode() != PermissionMode::Plan {
        let outcome = ToolOutcome::text(ToolStatus::Error, words::NOT_IN_PLAN_MODE);
        draft.emit(ToolFinished { tool_call, outcome });
        return;
    }
    let timeout = draft.durable().limits().ask_timeout_ms;
    let asked = ApprovalAsked {
        approval: draft.stamp().approval(),
        kind: ApprovalKind::Plan,
        tool_call: Some(tool_call),
        title,
        detail: plan,
        choices: Vec::new(),
        scopes: Vec::new(),
        expires_at: approvals::expiry(draft.now(), timeout),
        grant: None,
        binding: None,
        about: About::default(),
    };
    draft.emit(asked);
}

/// A person approved the plan: restores the session's previous permission mode.
pub(crate) fn leave(draft: &mut Draft<'_, '_>, approval: ApprovalId) {
    let from = draft.durable().mode();
    if from != PermissionMode::Plan {
        return;
    }
    draft.emit_by_caller(ModeChanged {
        from,
        to: draft.durable().before_plan(),
        approval: Some(approval),
    });
}

impl Durable {
    /// The mode to restore after plan mode.
    pub(crate) fn before_plan(&self) -> PermissionMode {
        self.before_plan.unwrap_or(PermissionMode::Default)
    }

    /// Folds a person's change of the settings: remembers the mode to restore after plan mode.
    pub(crate) fn mode_updated(&mut self, updated: &SessionUpdated) {
        let mode = self.mode();
        if updated.mode == Some(PermissionMode::Plan) && mode != PermissionMode::Plan {
            self.before_plan = Some(mode);
        }
    }

    pub(crate) fn mode_changed(&mut self, changed: &ModeChanged) -> Result<(), Refusal> {
        let settings = self.settings.as_mut().ok_or("the session was not created yet")?;
        settings.mode = changed.to;
        // The result of the call tells the model.
        self.told.plan = changed.to == PermissionMode::Plan;
        Ok(())
    }

    /// Folds the decision about a plan, by a person or by expiry.
    pub(crate) fn plan_decided(
        &mut self,
        tool_call: ToolCallId,
        open: &OpenApproval,
        decided: &ApprovalDecided,
    ) -> Result<(), Refusal> {
        let to = self.before_plan();
        let call = self.running_turn()?.call_mut(tool_call)?;
        if call.stage != Stage::Asking(open.approval) {
            return Err("the call does not wait for this answer");
        }
        call.stage = match decided.decision {
            Decision::Allow => Stage::Answered(words::plan_approved(to, decided)),
            Decision::Withdrawn => Stage::Allowed,
            // The plan is refused, not a permission, so this never stops the turn.
            Decision::Deny | Decision::Expired => Stage::Denied(words::plan_refused(decided)),
            Decision::Answer => return Err("a plan is approved or refused, not answered"),
        };
        Ok(())
    }
}
