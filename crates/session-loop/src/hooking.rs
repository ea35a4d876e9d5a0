//! Hooks of a call: asked in a kid before its verdict counts and after its result is there.

use crate::error::LoopError;
use crate::shell::Shell;
use crate::work::{Planned, Task};
use agentd_actor_kit::{SessionMsg, Work, spawn_kid};
use agentd_hooks::{HookCall, Hooks, Narrowing, Ran};
use agentd_policy::Judgement;
use agentd_protocol::{HookEvent, Scope, ToolCallId, ToolOutcome, ToolStatus, Verdict, VerdictKind};
use agentd_store::Blob;
use agentd_turn::{Input, Judged};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

impl Shell {
    /// Asks the hooks before a call that is not denied. Whether there is anybody to ask.
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
        planned.judgement = Some(judgement.clone());
        let (tool, input) = (tool.to_owned(), planned.input.clone());
        let attempt = self.next_run();
        if let Some(planned) = self.planned.get_mut(&tool_call) {
            planned.hooking = Some(attempt);
        }
        let call = self.hook_call(tool_call, tool, input);
        let places = Arc::clone(&self.places);
        let ask = move |hooks: Hooks| async move { hooks.before(call, &places).await };
        self.spawn_hooks(tool_call, attempt, ask).await;
        true
    }

    /// Tells the hooks of a result. What is handed back is for nobody to be told of.
    pub(crate) async fn tell_hooks(
        &mut self,
        tool_call: ToolCallId,
        outcome: Box<ToolOutcome>,
        blobs: Vec<Blob>,
    ) -> Option<(Box<ToolOutcome>, Vec<Blob>)> {
        let named = self.agent.durable().call_input(tool_call);
        let Some((name, input)) = named.map(|(name, input)| (name.to_owned(), input.clone())) else {
            return Some((outcome, blobs));
        };
        let tool = self
            .kit
            .registry()
            .get(&name)
            .map_or(name, |spec| spec.name.clone().into_owned());
        if !self.services.hooks.hears(Hooks::event_of(&outcome), &tool) {
            return Some((outcome, blobs));
        }
        // A new number: the end of the kid that made the result is no news any more.
        let attempt = self.next_run();
        let Some(run) = self.tools.get_mut(&tool_call) else {
            return Some((outcome, blobs));
        };
        run.attempt = attempt;
        let call = self.hook_call(tool_call, tool, input);
        let (places, told) = (Arc::clone(&self.places), (*outcome).clone());
        self.told.insert(tool_call, (outcome, blobs));
        let tell = move |hooks: Hooks| async move { hooks.after(call, told, places).await };
        self.spawn_hooks(tool_call, attempt, tell).await;
        None
    }

    fn hook_call(&self, tool_call: ToolCallId, tool: String, input: Value) -> HookCall {
        HookCall {
            session: self.session,
            tool_call,
            tool,
            input,
            workdir: PathBuf::from(self.workdir()),
        }
    }

    const fn next_run(&mut self) -> u32 {
        self.runs = self.runs.saturating_add(1);
        self.runs
    }

    async fn spawn_hooks<F>(&mut self, tool_call: ToolCallId, attempt: u32, ask: impl FnOnce(Hooks) -> F)
    where
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
        match spawn_kid(work, self.me.get_cell()).await {
            Ok(kid) => self.kids.add(kid, Work::Hooks { tool_call, attempt }),
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

    /// The hooks of a call ended, or their kid went down.
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
        let current = self
            .planned
            .get_mut(&tool_call)
            .filter(|planned| planned.hooking == Some(attempt));
        let Some(planned) = current else {
            return Ok(());
        };
        planned.hooking = None;
        let judgement = planned.judgement.take();
        let changed = ran.input.filter(|input| *input != planned.input);
        let denied = ran
            .narrowing
            .as_ref()
            .is_some_and(|narrowing| narrowing.kind == VerdictKind::Deny);
        planned.hooked = true;
        planned.narrowing = ran.narrowing;
        let records = ran.records;
        // A call that is in the log already was decided about before a restart: with this input and no other.
        let decided = self.agent.durable().call_input(tool_call).is_some();
        self.advance(Input::Hooked { tool_call, records }).await?;
        match changed {
            Some(_) if decided && !denied => {
                let why = "after the restart a hook wants another input than the one that was decided about";
                self.judged(tool_call, Some(Judgement::denied("hook:changed", why)))
                    .await
            }
            Some(input) if !denied => self.judge_again(tool_call, input).await,
            _ => self.judged(tool_call, judgement).await,
        }
    }

    /// What a hook put in the place of the model's input goes the whole way again, but not to the hooks.
    async fn judge_again(&mut self, tool_call: ToolCallId, input: Value) -> Result<(), LoopError> {
        let Some(planned) = self.planned.remove(&tool_call) else {
            return Ok(());
        };
        match self.prepare(&planned.prepared.name, &input) {
            Ok(prepared) => {
                let planned = Planned {
                    prepared,
                    input,
                    ..planned
                };
                self.ask_gate(tool_call, planned);
                Ok(())
            }
            Err(mut outcome) => {
                outcome.llm_text = format!("A hook changed the input of this call. {}", outcome.llm_text);
                let judged = Judged::Refused(*outcome);
                self.advance(Input::Judged { tool_call, judged }).await
            }
        }
    }

    /// The hooks after a call ended: its result is complete.
    async fn told(&mut self, tool_call: ToolCallId, ran: Ran) -> Result<(), LoopError> {
        self.tools.remove(&tool_call);
        let (outcome, blobs) = self.told.remove(&tool_call).unwrap_or_else(|| {
            let text = "the result of the tool was lost";
            (Box::new(ToolOutcome::text(ToolStatus::Error, text)), Vec::new())
        });
        let mut outcome = *outcome;
        if let Some(context) = ran.context {
            outcome.display.get_or_insert_with(|| outcome.llm_text.clone());
            outcome.llm_text.push_str("\n\n");
            outcome.llm_text.push_str(&context);
        }
        let records = ran.records;
        self.advance(Input::Hooked { tool_call, records }).await?;
        self.run(Task::with_blobs(Input::ToolEnded { tool_call, outcome }, blobs))
            .await
    }

    /// Nobody waits for the hooks of this call any more.
    pub(crate) fn forget_plan(&mut self, tool_call: ToolCallId) {
        if let Some(attempt) = self
            .planned
            .remove(&tool_call)
            .and_then(|planned| planned.hooking)
        {
            self.kids.kill(&Work::Hooks { tool_call, attempt });
        }
    }

    /// The same of all calls.
    pub(crate) fn forget_plans(&mut self) {
        let calls: Vec<_> = self.planned.keys().copied().collect();
        for call in calls {
            self.forget_plan(call);
        }
    }
}

/// What rules decided, narrowed by hooks. An allow of a hook changes nothing.
pub(crate) fn narrowed(mut judgement: Judgement, narrowing: Option<&Narrowing>) -> Judgement {
    let Some(narrowing) = narrowing.filter(|narrowing| narrowing.kind > judgement.verdict.kind) else {
        return judgement;
    };
    judgement.verdict = Verdict {
        kind: narrowing.kind,
        rule: narrowing.rule.clone(),
        reason: narrowing.reason.clone(),
    };
    // A rule that a person adds does not answer a hook: the next call is asked about again.
    judgement.scopes = vec![Scope::Once];
    judgement.grant = None;
    judgement
}
