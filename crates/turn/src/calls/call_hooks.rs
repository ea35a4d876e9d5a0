//! Hooks of tool calls: records what they decided; an input that they changed replaces the original from then on.

use crate::calls::judging;
use crate::calls::open_call::Stage;
use crate::draft::Draft;
use crate::durable::Durable;
use crate::durable::apply::Refusal;
use crate::questions::{self, Subject};
use agentd_protocol::{Binding, HookEvent, HookFinished, ToolCallId, VerdictKind};
use serde_json::Value;

/// Handles finished hooks of a call. Before its verdict the call may not be in the log yet: the records wait for it.
pub(crate) fn finished(draft: &mut Draft<'_, '_>, id: ToolCallId, records: Vec<HookFinished>) {
    let before = records
        .iter()
        .any(|record| matches!(record.event, HookEvent::PreToolUse | HookEvent::PermissionRequest));
    if before && !draft.seen().questions.is_pending(&Subject::Verdict(id)) {
        // The time limit has passed, and the call is denied.
        return;
    }
    // Each request has its own deadline: the one that follows gets the full time.
    questions::extend(draft, &Subject::Verdict(id));
    let volatile = draft.volatile();
    if volatile.answer.is_some() {
        volatile.hooked.entry(id).or_default().extend(records);
        return;
    }
    judging::propose_all(draft);
    write_down(draft, id, records);
}

/// Records the waiting hook results of a call that is now in the log.
pub(crate) fn write_waiting(draft: &mut Draft<'_, '_>, id: ToolCallId) {
    let records = draft.volatile().hooked.remove(&id).unwrap_or_default();
    write_down(draft, id, records);
}

fn write_down(draft: &mut Draft<'_, '_>, id: ToolCallId, records: Vec<HookFinished>) {
    if draft.durable().call(id).is_some() {
        for record in records {
            draft.emit(record);
        }
    }
}

impl Durable {
    /// A call of the running turn: its tool, and its input as changed by hooks.
    #[must_use]
    pub fn call_input(&self, id: ToolCallId) -> Option<(&str, &Value)> {
        self.call(id).map(|call| (call.name.as_str(), &call.input))
    }

    /// The approved binding, if there was an approval: the call runs only if this still matches.
    #[must_use]
    pub fn bound(&self, id: ToolCallId) -> Option<&Binding> {
        self.call(id).and_then(|call| call.bound.as_ref())
    }

    /// Whether a person or the rules allowed the call.
    #[must_use]
    pub fn is_allowed(&self, id: ToolCallId) -> bool {
        self.call(id).is_some_and(|call| call.stage == Stage::Allowed)
    }

    /// Folded, so that after a restart the call is still the one that was decided and a turn told to continue does so.
    pub(crate) fn hook_finished(&mut self, finished: &HookFinished) -> Result<(), Refusal> {
        if let Some(id) = finished.tool_call {
            let call = self.running_turn()?.call_mut(id)?;
            if let Some(input) = &finished.input {
                call.input.clone_from(input);
            }
            return Ok(());
        }
        self.greeted |= finished.event == HookEvent::SessionStart;
        let at_end = matches!(finished.event, HookEvent::Stop | HookEvent::SubagentStop);
        if at_end && finished.decision == Some(VerdictKind::Deny) {
            let turn = self.running_turn()?;
            turn.stops = turn.stops.saturating_add(1);
            turn.goes_on = Some(finished.hook.clone());
        }
        Ok(())
    }
}
