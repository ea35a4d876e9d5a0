//! Effects: what the core wants done, done.

use crate::outbox::After;
use crate::shell::Shell;
use crate::work::{ModelRun, Task, ToolRun};
use crate::workers::{ModelJob, ToolJob};
use agentd_actor_kit::{Done, FeedMsg, GateMsg, SessionMsg, Work};
use agentd_protocol::{ApprovalId, CallId, FailureClass, Principal, ToolCallId, ToolOutcome, ToolStatus};
use agentd_provider::Dialect;
use agentd_turn::{Effect, Input, ModelFailure};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

impl Shell {
    /// Carries one effect out. Nothing here waits for the world: kids do the long work.
    pub(crate) async fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::StartModel {
                call,
                attempt,
                model,
                tools_off,
            } => {
                self.start_model(call, attempt, &model, tools_off).await;
            }
            Effect::KillModel { call, attempt } => self.kill_model(call, attempt),
            Effect::Judge {
                tool_call,
                name,
                input,
                grants,
            } => self.judge(tool_call, &name, &input, grants),
            Effect::RunTool {
                tool_call,
                name,
                input,
                ..
            } => self.run_tool(tool_call, &name, &input).await,
            Effect::KillTool { tool_call } => self.kill_tool(tool_call),
            Effect::SetTimer {
                key,
                generation,
                after_ms,
            } => {
                self.timers.set(&self.me, key, generation, after_ms);
            }
            Effect::ClearTimer { key } => self.timers.clear(key),
            Effect::CountDeciders { approval } => self.count_deciders(approval),
            Effect::AddRule { rule, approval, by } => self.add_rule(rule, approval, by),
        }
    }

    /// What waited for a commit goes on.
    pub(crate) async fn go_on(&mut self, ready: Vec<After>) {
        for after in ready {
            match after {
                After::Reply(asker, reply) => asker.done.answer(reply),
                After::Effect(effect) => self.carry_out(effect).await,
            }
        }
    }

    async fn start_model(&mut self, call: CallId, attempt: u32, model: &str, tools_off: bool) {
        let started = self.spawn_model(call, attempt, model, tools_off).await;
        match started {
            Ok(()) => {
                self.model = Some(ModelRun {
                    call,
                    attempt,
                    waits: false,
                });
            }
            Err((class, message)) => {
                let failure = ModelFailure {
                    class,
                    message,
                    status: None,
                    retry_after_ms: None,
                };
                self.follow.push_back(Task::of(Input::ModelFailed {
                    call,
                    attempt,
                    failure,
                }));
            }
        }
        self.live.touch();
    }

    async fn spawn_model(
        &mut self,
        call: CallId,
        attempt: u32,
        model: &str,
        tools_off: bool,
    ) -> Result<(), (FailureClass, String)> {
        let services = Arc::clone(&self.services);
        let (spec, client) = services
            .models
            .get(model)
            .map_err(|error| (FailureClass::InvalidRequest, error.message))?;
        let offered = self
            .agent
            .durable()
            .settings
            .as_ref()
            .map_or(&[][..], |settings| &settings.tools);
        let body = self
            .requests
            .body(&services, offered, &spec, &self.transcript, tools_off);
        let messages = match spec.dialect {
            Dialect::Scripted => self.transcript.messages().to_vec(),
            Dialect::Anthropic
            | Dialect::OpenaiChat
            | Dialect::OpenaiResponses
            | Dialect::Gemini
            | Dialect::LlamaCompletion
            | Dialect::Ollama => Vec::new(),
        };
        let to = self.me.clone();
        let job = ModelJob {
            to,
            session: self.session,
            call,
            attempt,
            spec,
            client,
            body,
            messages,
        };
        let kid = services.workers.model(job).await.map_err(|error| {
            (
                FailureClass::Internal,
                format!("the call could not be started: {error}"),
            )
        })?;
        self.kids.add(kid, Work::Model { call, attempt });
        Ok(())
    }

    fn kill_model(&mut self, call: CallId, attempt: u32) {
        self.kids.kill(&Work::Model { call, attempt });
        if self
            .model
            .is_some_and(|run| run.call == call && run.attempt == attempt)
        {
            self.model = None;
        }
        self.live.touch();
    }

    async fn run_tool(&mut self, tool_call: ToolCallId, name: &str, input: &Value) {
        self.runs = self.runs.saturating_add(1);
        let attempt = self.runs;
        match self.spawn_tool(tool_call, attempt, name, input).await {
            Ok(()) => {
                self.tools.insert(
                    tool_call,
                    ToolRun {
                        attempt,
                        waits: false,
                    },
                );
            }
            Err(outcome) => {
                let outcome = *outcome;
                self.follow
                    .push_back(Task::of(Input::ToolEnded { tool_call, outcome }));
            }
        }
        self.live.touch();
    }

    async fn spawn_tool(
        &mut self,
        tool_call: ToolCallId,
        attempt: u32,
        name: &str,
        input: &Value,
    ) -> Result<(), Box<ToolOutcome>> {
        let services = Arc::clone(&self.services);
        let prepared = match self.planned.remove(&tool_call) {
            Some(planned) => planned.prepared,
            None => self.prepare(name, input)?,
        };
        let job = ToolJob {
            to: self.me.clone(),
            session: self.session,
            tool_call,
            attempt,
            prepared,
            workdir: PathBuf::from(self.workdir()),
            seen: Arc::clone(&self.seen),
            executor: services.tools.clone(),
        };
        let kid = services.workers.tool(job).await.map_err(|error| {
            let text = format!("the tool could not be started: {error}");
            Box::new(ToolOutcome::text(ToolStatus::Error, text))
        })?;
        self.kids.add(kid, Work::Tool { tool_call, attempt });
        Ok(())
    }

    fn kill_tool(&mut self, tool_call: ToolCallId) {
        // It may not have started: its intent is still on the way to the store.
        self.outbox.forget_run(tool_call);
        self.planned.remove(&tool_call);
        if let Some(run) = self.tools.remove(&tool_call) {
            self.kids.kill(&Work::Tool {
                tool_call,
                attempt: run.attempt,
            });
        }
        self.live.touch();
    }

    fn count_deciders(&self, approval: ApprovalId) {
        let done = Done::cast(&self.me, move |count| SessionMsg::Deciders { approval, count });
        self.services.feed.cast(FeedMsg::Deciders {
            session: self.session,
            done,
        });
    }

    fn add_rule(&self, rule: String, approval: ApprovalId, by: Principal) {
        let session = self.session;
        let done = Done::new(move |stored| match stored {
            Some(Ok(())) => {}
            Some(Err(why)) => tracing::warn!(%session, why, "an always-rule could not be kept"),
            None => tracing::warn!(%session, "an always-rule was lost: the gate is down"),
        });
        self.services.gate.cast(GateMsg::AddRule {
            rule,
            approval: Some(approval),
            by,
            done,
        });
    }
}
