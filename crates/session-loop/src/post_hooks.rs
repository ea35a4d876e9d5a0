//! Hooks that a worker notifies of a call's result before the result counts.

use crate::error::LoopError;
use crate::shell::Shell;
use crate::work::Task;
use agentd_actor_kit::CallStage;
use agentd_hooks::{Hooks, Ran};
use agentd_protocol::{ToolCallId, ToolOutcome, ToolStatus};
use agentd_store::Blob;
use agentd_turn::Input;
use std::sync::Arc;

impl Shell {
    /// Notifies the hooks of a result. Returns the result when no hook wants it.
    pub(crate) async fn tell_hooks(
        &mut self,
        tool_call: ToolCallId,
        outcome: Box<ToolOutcome>,
        blobs: Vec<Blob>,
    ) -> Option<(Box<ToolOutcome>, Vec<Blob>)> {
        let named = self.core.agent.durable().call_input(tool_call);
        let Some((name, input)) = named.map(|(name, input)| (name.to_owned(), input.clone())) else {
            return Some((outcome, blobs));
        };
        let tool = self
            .toolset
            .registry()
            .get(&name)
            .map_or(name, |spec| spec.name.clone().into_owned());
        if !self.services.hooks.hears(Hooks::event_of(&outcome), &tool) {
            return Some((outcome, blobs));
        }
        // A new number: the exit of the worker that made the result no longer matters.
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

    /// The hooks after a call ended: its result is complete.
    pub(crate) async fn told(&mut self, tool_call: ToolCallId, ran: Ran) -> Result<(), LoopError> {
        self.tools.remove(&tool_call);
        let (outcome, blobs) = self.told.remove(&tool_call).unwrap_or_else(|| {
            let text = "the result of the tool was lost";
            let lost = ToolOutcome::text(ToolStatus::Error, text).coded("E_TOOL");
            (Box::new(lost), Vec::new())
        });
        let mut outcome = *outcome;
        let changed = ran.output.is_some();
        if let Some(output) = ran.output {
            outcome.llm_text = output;
        }
        if let Some(context) = ran.context {
            outcome.display.get_or_insert_with(|| outcome.llm_text.clone());
            outcome.llm_text.push_str("\n\n");
            outcome.llm_text.push_str(&context);
        }
        self.leaves(
            tool_call,
            CallStage::PostHook,
            if changed { "changed" } else { "ok" },
        );
        let records = ran.records;
        self.advance(Input::Hooked { tool_call, records }).await?;
        self.run(Task::with_blobs(Input::ToolEnded { tool_call, outcome }, blobs))
            .await
    }
}
