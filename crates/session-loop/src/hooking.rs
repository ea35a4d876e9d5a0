//! Hooks that a worker asks about a call before its verdict counts.

use crate::error::LoopError;
use crate::shell::Shell;
use crate::stages::of_verdict;
use crate::work::Planned;
use agentd_actor_kit::{CallStage, SessionMsg, Work, spawn_worker};
use agentd_hooks::{HookCall, Hooks, Narrowing, Ran};
use agentd_policy::Judgement;
use agentd_protocol::{HookEvent, HookFinished, Scope, ToolCallId, Verdict, VerdictKind};
use agentd_turn::{Input, Judged};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

impl Shell {
    /// Asks the hooks before a call that is not denied. Returns whether any hook was asked.
    pub(crate) async fn ask_hooks(&mut self, tool_call: ToolCallId, judgement: &Judgement) -> bool {
        let Some(planned) = self.planned.get_mut(&tool_call) else {
            return false;
        };
        let tool = planned.prepared.name.as_ref();
        let asked = planned.hooked
            || judgement.verdict.kind == VerdictKind::Deny
            || !self.services.hooks.hears(HookEvent::PreToolUse, tool);
        if asked {
            return false;
        }
        let (tool, input) = (tool.to_owned(), planned.input.clone());
        let attempt = self.hooks_begin(tool_call, HookEvent::PreToolUse, judgement);
        let call = self.hook_call(tool_call, tool, input);
        let places = Arc::clone(&self.places);
        let ask = move |hooks: Hooks| async move { hooks.before(call, &places).await };
        self.spawn_hooks(tool_call, attempt, ask).await;
        true
    }

    /// Asks the hooks about a question before a person is asked, once. Hooks are not asked about a person's answer.
    pub(crate) async fn ask_instead(
        &mut self,
        tool_call: ToolCallId,
        judgement: &Judgement,
        decided: &Judgement,
    ) -> bool {
        let Some(planned) = self.planned.get(&tool_call) else {
            return false;
        };
        let tool = planned.prepared.name.to_string();
        let asked = planned.questioned
            || self.core.agent.durable().is_allowed(tool_call)
            || !self.services.hooks.hears(HookEvent::PermissionRequest, &tool);
        if asked {
            return false;
        }
        let input = planned.input.clone();
        let attempt = self.hooks_begin(tool_call, HookEvent::PermissionRequest, judgement);
        let call = self.hook_call(tool_call, tool, input);
        let why = (decided.verdict.rule.clone(), decided.verdict.reason.clone());
        let places = Arc::clone(&self.places);
        let ask = move |hooks: Hooks| async move { hooks.instead(call, why, &places).await };
        self.spawn_hooks(tool_call, attempt, ask).await;
        true
    }

    fn hooks_begin(&mut self, tool_call: ToolCallId, event: HookEvent, judgement: &Judgement) -> u32 {
        let attempt = self.next_run();
        if let Some(planned) = self.planned.get_mut(&tool_call) {
            planned.judgement = Some(judgement.clone());
            planned.hooking = Some((attempt, event));
        }
        attempt
    }

    pub(crate) fn hook_call(&self, tool_call: ToolCallId, tool: String, input: Value) -> HookCall {
        HookCall {
            session: self.session,
            tool_call,
            tool,
            input,
            workdir: PathBuf::from(self.workdir()),
        }
    }

    pub(crate) const fn next_run(&mut self) -> u32 {
        self.runs = self.runs.saturating_add(1);
        self.runs
    }

    pub(crate) async fn spawn_hooks<F>(
        &mut self,
        tool_call: ToolCallId,
        attempt: u32,
        ask: impl FnOnce(Hooks) -> F,
    ) where
        F: Future<Output = Ran> + Send + 'static,
    {
        let (to, asked) = (self.me.clone(), ask(self.services.hooks.clone()));
        let work = async move {
            let ran = Box::new(asked.await);
            let _ = to.cast(SessionMsg::Hooked {
                tool_call,
                attempt,
                ran,
            });
        };
        match spawn_worker(work, self.me.get_cell()).await {
            Ok(worker) => self.running.add(worker, Work::Hooks { tool_call, attempt }),
            Err(error) => {
                let _ = self.me.cast(SessionMsg::Hooked {
                    tool_call,
                    attempt,
                    ran: Box::new(Ran::lost(&error.to_string())),
                });
            }
        }
        self.live.touch();
    }

    /// The hooks of a call ended, or their worker went down.
    pub(crate) async fn hooked(
        &mut self,
        tool_call: ToolCallId,
        attempt: u32,
        ran: Ran,
    ) -> Result<(), LoopError> {
        if self
            .tools
            .get(&tool_call)
            .is_some_and(|run| run.attempt == attempt)
        {
            return self.told(tool_call, ran).await;
        }
        let current = self.planned.get_mut(&tool_call);
        let Some((planned, event)) = current.and_then(|planned| {
            let (number, event) = planned.hooking?;
            (number == attempt).then_some((planned, event))
        }) else {
            return Ok(());
        };
        planned.hooking = None;
        let judgement = planned
            .judgement
            .take()
            .unwrap_or_else(|| Judgement::denied("hook:error", "the verdict of the rules was lost"));
        if event == HookEvent::PermissionRequest {
            return self.answered(tool_call, judgement, ran).await;
        }
        self.heard_before(tool_call, judgement, ran).await
    }

    /// The hooks that run before a call ended.
    async fn heard_before(
        &mut self,
        tool_call: ToolCallId,
        judgement: Judgement,
        ran: Ran,
    ) -> Result<(), LoopError> {
        let Some(planned) = self.planned.get_mut(&tool_call) else {
            return Ok(());
        };
        let changed = ran.input.filter(|input| *input != planned.input);
        let kind = ran.narrowing.as_ref().map(|narrowing| narrowing.kind);
        let denied = kind == Some(VerdictKind::Deny);
        planned.hooked = true;
        planned.narrowing = ran.narrowing;
        let outcome = match kind {
            Some(kind) if kind > VerdictKind::Allow => of_verdict(kind),
            _ if changed.is_some() => "changed",
            _ => "ok",
        };
        self.leaves(tool_call, CallStage::PreHook, outcome);
        let records = ran.records;
        // A call that is already in the log was decided before a restart: with this input and no other.
        let decided = self.core.agent.durable().call_input(tool_call).is_some();
        self.advance(Input::Hooked { tool_call, records }).await?;
        match changed {
            Some(_) if decided && !denied => {
                let why = "after the restart, a hook requires another input than the one that was approved";
                self.judged(tool_call, Judgement::denied("hook:changed", why))
                    .await
            }
            Some(input) if !denied => self.judge_again(tool_call, input).await,
            _ => self.judged(tool_call, judgement).await,
        }
    }

    /// The hooks asked instead of a person ended. If they defer to the person, or have no answer, the question stays open.
    async fn answered(
        &mut self,
        tool_call: ToolCallId,
        judgement: Judgement,
        ran: Ran,
    ) -> Result<(), LoopError> {
        let Some(planned) = self.planned.get_mut(&tool_call) else {
            return Ok(());
        };
        planned.questioned = true;
        let wanted = |narrowing: &Option<Narrowing>| narrowing.as_ref().map(|narrowing| narrowing.kind);
        if wanted(&ran.narrowing) > wanted(&planned.narrowing) {
            planned.narrowing = ran.narrowing;
        }
        planned.permit = ran.permit;
        let records = ran.records;
        self.advance(Input::Hooked { tool_call, records }).await?;
        self.judged(tool_call, judgement).await
    }

    /// The result that replaces hooks whose worker is gone: the call is denied, but a question stays with the person.
    pub(crate) fn lost(&self, tool_call: ToolCallId, why: &str) -> Ran {
        let hooking = self.planned.get(&tool_call).and_then(|planned| planned.hooking);
        match hooking {
            Some((_, event @ HookEvent::PermissionRequest)) => Ran {
                records: vec![HookFinished {
                    tool_call: Some(tool_call),
                    ..HookFinished::lost(event, why)
                }],
                ..Ran::default()
            },
            _ => Ran::lost(why),
        }
    }

    /// Reports the completed judging stages to the trace.
    pub(crate) fn leave_judging(&mut self, tool_call: ToolCallId, kind: VerdictKind) {
        let Some(planned) = self.planned.get(&tool_call) else {
            return;
        };
        let (hooked, questioned, permitted) = (planned.hooked, planned.questioned, planned.permit.is_some());
        if !hooked && kind != VerdictKind::Deny {
            self.leaves(tool_call, CallStage::PreHook, "skipped");
        }
        let outcome = match kind {
            VerdictKind::Allow if permitted => "hook_allowed",
            VerdictKind::Allow => "skipped",
            VerdictKind::Deny if questioned => "hook_denied",
            VerdictKind::Ask | VerdictKind::Deny => return,
        };
        self.leaves(tool_call, CallStage::Confirmation, outcome);
    }

    /// Judges input that a hook substituted for the model's from the beginning, but does not ask the hooks again.
    async fn judge_again(&mut self, tool_call: ToolCallId, input: Value) -> Result<(), LoopError> {
        let Some(planned) = self.planned.remove(&tool_call) else {
            return Ok(());
        };
        match self.prepare(&planned.prepared.name, &input) {
            Ok(prepared) => {
                let planned = Planned {
                    prepared,
                    input,
                    ..*planned
                };
                self.ask_gate(tool_call, planned);
                Ok(())
            }
            Err(mut outcome) => {
                outcome.llm_text = format!("A hook changed the input of this call. {}", outcome.llm_text);
                let judged = Judged::Refused(*outcome);
                self.answer_verdict(planned.question, judged).await
            }
        }
    }

    /// Drops the hooks of this call.
    pub(crate) fn forget_plan(&mut self, tool_call: ToolCallId) {
        if let Some(attempt) = self
            .planned
            .remove(&tool_call)
            .and_then(|planned| planned.hooking)
            .map(|(attempt, _)| attempt)
        {
            self.running.kill(&Work::Hooks { tool_call, attempt });
        }
    }

    /// Drops the hooks of all calls.
    pub(crate) fn forget_plans(&mut self) {
        let calls: Vec<_> = self.planned.keys().copied().collect();
        for call in calls {
            self.forget_plan(call);
        }
    }
}

/// The rules' decision, narrowed by hooks. A hook's allow changes nothing unless the operator lets it answer the rules'
/// question; it never answers another hook's question.
pub(crate) fn narrowed(
    mut judgement: Judgement,
    narrowing: Option<&Narrowing>,
    permit: Option<&Narrowing>,
) -> Judgement {
    let asks = |narrowing: &&Narrowing| narrowing.kind > VerdictKind::Allow;
    let wanted = match (narrowing.filter(asks), permit) {
        (Some(narrowing), _) => Some(narrowing).filter(|narrowing| narrowing.kind > judgement.verdict.kind),
        (None, Some(permit)) if judgement.verdict.kind == VerdictKind::Ask => Some(permit),
        (None, _) => None,
    };
    let Some(wanted) = wanted else {
        return judgement;
    };
    judgement.verdict = Verdict {
        kind: wanted.kind,
        rule: wanted.rule.clone(),
        reason: wanted.reason.clone(),
    };
    // A rule that a person adds does not answer a hook: the next call raises the question again.
    judgement.scopes = vec![Scope::Once];
    judgement.grant = None;
    judgement
}
