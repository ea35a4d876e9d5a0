//! Hooks around tool calls: asked before a call that is not denied, notified of each result. They can restrict and add
//! text; whatever happens to them, a call gets exactly one result.

use crate::hot::Hot;
use crate::options::{Flaw, Knob};
use crate::workers::Work;
use crate::world::World;
use agentd_policy::Judgement;
use agentd_protocol::{
    HookEvent, HookFinished, HookStatus, ToolCallId, ToolOutcome, ToolStatus, VerdictKind,
};
use agentd_turn::Input;

impl World {
    fn has_call_hooks(&self) -> bool {
        self.options.get(Knob::CallHooks) > 0
    }

    /// Asks the hooks before a call. False if there are none to ask.
    pub(crate) fn ask_before(&mut self, hot: &mut Hot, tool_call: ToolCallId, judgement: &Judgement) -> bool {
        if !self.has_call_hooks() || judgement.verdict.kind == VerdictKind::Deny {
            return false;
        }
        let (number, session) = (hot.number, hot.session);
        let Some(planned) = hot.planned.get_mut(&tool_call).filter(|planned| !planned.hooked) else {
            return false;
        };
        let worker = self.spawn(number, session, Work::CallHooks(tool_call), 200);
        planned.judgement = Some(judgement.clone());
        planned.hooking = Some(worker);
        true
    }

    /// Passes a result to the hooks, which may add to it.
    pub(crate) fn tell_after(&mut self, hot: &mut Hot, tool_call: ToolCallId, outcome: ToolOutcome) {
        let open = hot.core.agent().durable().call_input(tool_call).is_some();
        if !open || !self.has_call_hooks() {
            hot.tools.remove(&tool_call);
            return self.advance(hot, Input::ToolEnded { tool_call, outcome });
        }
        let worker = self.spawn(hot.number, hot.session, Work::CallHooks(tool_call), 200);
        hot.tools.insert(tool_call, worker);
        hot.told.insert(tool_call, outcome);
    }

    /// Handles the answer of a call's hooks, which may be empty.
    pub(crate) fn hooked(&mut self, hot: &mut Hot, tool_call: ToolCallId, worker: u64) {
        if hot.tools.get(&tool_call) == Some(&worker) {
            hot.tools.remove(&tool_call);
            let outcome = hot.told.remove(&tool_call).unwrap_or_else(|| {
                ToolOutcome::text(ToolStatus::Error, "the result of the tool was lost").coded("E_TOOL")
            });
            let records = vec![record(tool_call, HookEvent::PostToolUse, None)];
            self.advance(hot, Input::Hooked { tool_call, records });
            return self.advance(hot, Input::ToolEnded { tool_call, outcome });
        }
        let Some(planned) = hot.planned.get_mut(&tool_call) else {
            return;
        };
        if planned.hooking != Some(worker) {
            return;
        }
        planned.hooking = None;
        planned.hooked = true;
        let Some(judgement) = planned.judgement.take() else {
            return;
        };
        let denies = self.chance(Knob::CallHooks, 100);
        if denies {
            self.book.gate_says(hot.session, tool_call, VerdictKind::Deny);
        }
        let decision = denies.then_some(VerdictKind::Deny);
        let records = vec![record(tool_call, HookEvent::PreToolUse, decision)];
        self.advance(hot, Input::Hooked { tool_call, records });
        let judgement = match denies && self.disk.flaw != Flaw::DeafHook {
            true => Judgement::denied("hook:h", "not so"),
            false => judgement,
        };
        self.judged(hot, tool_call, judgement);
    }
}

fn record(tool_call: ToolCallId, event: HookEvent, decision: Option<VerdictKind>) -> HookFinished {
    HookFinished {
        tool_call: Some(tool_call),
        prompt: None,
        hook: "h".into(),
        event,
        status: match decision {
            Some(_) => HookStatus::Blocked,
            None => HookStatus::Ok,
        },
        decision,
        reason: decision.map(|_| "not so".into()),
        input: None,
        context: None,
        output: None,
        replaced: None,
        duration_ms: 3,
    }
}
