//! Carries out the effects that the core requests.

use crate::compacting::Shortening;
use crate::shell::Shell;
use crate::work::{Task, ToolRun};
use crate::workers::{ModelJob, ToolJob};
use agentd_actor_kit::{Alarm, Done, FeedMsg, GateMsg, SessionMsg, Work};
use agentd_protocol::{
    ApprovalId, CallId, FailureClass, Grant, Message, Principal, RequestItem, RequestPart, ThinkingLevel,
    ToolCallId, ToolOutcome, ToolProtocol, ToolStatus,
};
use agentd_provider::{Adjust, Dialect, ModelSpec};
use agentd_turn::{Answer, Effect, Input, ModelFailure, Question, QuestionId};
use ractor::{ActorCell, SpawnErr};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The parts that start an attempt.
struct StartModel {
    call: CallId,
    attempt: u32,
    model: String,
    tools_off: bool,
    credential: Option<String>,
    thinking: Option<ThinkingLevel>,
    without: Vec<RequestPart>,
    left_out: Vec<RequestItem>,
    window: Option<u64>,
    insists: bool,
    cache_hour: bool,
}

impl Shell {
    /// Carries out one effect. Nothing here waits for I/O: workers do the long work.
    pub(crate) async fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::StartModel {
                call,
                attempt,
                model,
                tools_off,
                credential,
                thinking,
                without,
                left_out,
                window,
                insists,
                cache_hour,
            } => {
                self.start_model(StartModel {
                    call,
                    attempt,
                    model,
                    tools_off,
                    credential,
                    thinking,
                    without,
                    left_out,
                    window,
                    insists,
                    cache_hour,
                })
                .await;
            }
            Effect::KillModel { call, attempt } => self.kill_model(call, attempt),
            Effect::Ask { id, question } => self.ask(id, question).await,
            Effect::Withdraw { id } => self.withdraw(id),
            Effect::RunTool {
                tool_call,
                name,
                input,
                ..
            } => self.run_tool(tool_call, &name, &input).await,
            Effect::KillTool { tool_call } => self.kill_tool(tool_call),
            effect @ (Effect::StartChild { .. }
            | Effect::StopChild { .. }
            | Effect::Lead { .. }
            | Effect::TellRoot) => self.for_family(effect),
            Effect::KillJobs => self.jobs.kill_all(),
            Effect::SetTimer {
                key,
                generation,
                after_ms,
            } => {
                let after = Duration::from_millis(after_ms);
                let fires = SessionMsg::Timer { key, generation };
                self.timers.insert(key, Alarm::set(&self.me, after, fires));
            }
            Effect::ClearTimer { key } => drop(self.timers.remove(&key)),
            Effect::AddRule { grant, approval, by } => self.add_rule(grant, approval, by),
        }
    }

    /// Finds the answer to a question, unless it was withdrawn while it waited for the commit. Every question gets an
    /// answer: `Answer::Nobody` if whoever was asked is gone.
    async fn ask(&mut self, id: QuestionId, question: Question) {
        if !self.core.agent.awaits(id) {
            return;
        }
        match question {
            Question::Verdict {
                tool_call,
                name,
                input,
                grants,
            } => self.judge(id, tool_call, &name, &input, grants),
            Question::Hooks(event) => self.ask_lifecycle_hooks(id, event).await,
            Question::Shorten {
                how,
                target_tokens,
                cause,
                summariser,
            } => {
                let wanted = Shortening {
                    id,
                    how,
                    target_tokens,
                    cause,
                    summariser,
                };
                self.shorten(wanted).await;
            }
            Question::Side(side) => self.start_side(id, side).await,
            Question::TokenCount {
                model,
                credential,
                without,
                within_ms,
            } => {
                let within = Duration::from_millis(within_ms);
                let job = self.count_job(id, &model, credential, without, within);
                self.count_tokens(id, job).await;
            }
            Question::TreeSpending { root, parent } => self.ask_tree(id, root, parent),
            Question::Deciders { approval: _ } => self.count_deciders(id),
            Question::Report { parent, ended } => self.tell_parent(id, parent, *ended),
            Question::Rework(work) => self.rework(id, *work).await,
            Question::Checkpoint => self.checkpoint(id).await,
            Question::Setup => self.set_up(id).await,
        }
        self.live.touch();
    }

    /// Drops the work for a question that was withdrawn.
    fn withdraw(&mut self, id: QuestionId) {
        self.running.kill(&Work::Question { id });
        self.drop_side(id);
        self.stop_shortening(id);
        self.live.touch();
    }

    /// The worker that finds the answer has started, or could not start.
    pub(crate) fn asked(&mut self, id: QuestionId, worker: Result<ActorCell, SpawnErr>) {
        match worker {
            Ok(worker) => self.running.add(worker, Work::Question { id }),
            Err(error) => {
                let why = format!("it could not be started: {error}");
                self.core.answer(id, Answer::Nobody(why));
            }
        }
    }

    async fn start_model(&mut self, start: StartModel) {
        let (call, attempt) = (start.call, start.attempt);
        self.watched.asks_model(call, attempt);
        match self.spawn_model(start).await {
            Ok(()) => self.core.model_started((call, attempt)),
            Err((class, message)) => {
                let failure = ModelFailure::new(class, message);
                self.core.could_not_start((call, attempt), failure);
            }
        }
        self.live.touch();
    }

    async fn spawn_model(&mut self, start: StartModel) -> Result<(), (FailureClass, String)> {
        let services = Arc::clone(&self.services);
        let (spec, client) = services
            .models
            .get(&start.model)
            .map_err(|error| (FailureClass::InvalidRequest, error.message))?;
        let created = self.core.agent.durable().settings.as_ref();
        let mut without = start.without;
        services.models.share_lessons(&spec.provider, &mut without);
        let adjust = Adjust {
            thinking: start.thinking,
            tool_protocol: created.and_then(|created| created.limits.tool_protocol),
            max_output: created.and_then(|created| created.limits.max_output),
            without,
            window: start.window,
            cache_hour: start.cache_hour,
        };
        let spec = self.requests.adjusted(spec, adjust);
        self.requests.leave_out(start.left_out);
        let sample = self.services.models.sample(&start.model);
        let (tools, transcript) = (&self.toolset, &self.core.transcript);
        let body = self
            .requests
            .body(tools, &spec, transcript, start.tools_off, sample);
        let messages = self.messages_for(&spec);
        // Their names tell calls in the text, and misspelled ones, from everything else.
        let tools = match spec.tool_protocol {
            ToolProtocol::Native if start.tools_off => Vec::new(),
            ToolProtocol::Native | ToolProtocol::JsonText => self.toolset.offered().to_vec(),
        };
        let (call, attempt) = (start.call, start.attempt);
        self.sends((call, attempt), &spec);
        let job = ModelJob {
            to: self.me.clone(),
            call,
            attempt,
            ask: services.sharing.ask(
                self.session,
                created,
                &spec,
                (start.credential, start.insists),
                self.core.transcript.estimate_tokens(),
            ),
            spec,
            client,
            tools,
            body,
            messages,
        };
        let worker = services.workers.model(job).await.map_err(|error| {
            (
                FailureClass::Internal,
                format!("the call could not be started: {error}"),
            )
        })?;
        self.running.add(worker, Work::Model { call, attempt });
        Ok(())
    }

    /// Only scripts and recorders need the messages; other models get the encoded body.
    fn messages_for(&self, spec: &ModelSpec) -> Vec<Arc<Message>> {
        if spec.dialect == Dialect::Scripted || spec.record.is_some() {
            self.core.transcript.messages().to_vec()
        } else {
            Vec::new()
        }
    }

    pub(crate) fn kill_model(&mut self, call: CallId, attempt: u32) {
        self.running.kill(&Work::Model { call, attempt });
        self.core.drop_model((call, attempt));
        self.live.touch();
    }

    async fn run_tool(&mut self, tool_call: ToolCallId, name: &str, input: &Value) {
        self.watched.runs_tool(tool_call, self.core.outbox.durable());
        self.runs = self.runs.saturating_add(1);
        let attempt = self.runs;
        self.enters(tool_call);
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
                self.core.push(Task::of(Input::ToolEnded { tool_call, outcome }));
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
        let planned = self.planned.remove(&tool_call);
        let permitted = planned.as_ref().is_some_and(|planned| planned.permit.is_some());
        let judged = planned.as_ref().and_then(|planned| planned.judged_contents());
        let prepared = match planned {
            Some(planned) => planned.prepared,
            None => self.prepare(name, input)?,
        };
        let mandate = self.mandate(tool_call, &prepared, (permitted, judged));
        let job = ToolJob {
            to: self.me.clone(),
            session: self.session,
            tool_call,
            attempt,
            prepared,
            workdir: PathBuf::from(self.workdir()),
            seen: Arc::clone(&self.core.seen),
            jobs: self.jobs.clone(),
            executor: services.tools.clone(),
            mandate,
        };
        let worker = services.workers.tool(job).await.map_err(|error| {
            let text = format!("the tool could not be started: {error}");
            Box::new(ToolOutcome::text(ToolStatus::Error, text).coded("E_TOOL"))
        })?;
        self.running.add(worker, Work::Tool { tool_call, attempt });
        Ok(())
    }

    fn kill_tool(&mut self, tool_call: ToolCallId) {
        // The call may not have started: its intent may still be on the way to the store.
        self.core.forget_run(tool_call);
        self.forget_plan(tool_call);
        self.told.remove(&tool_call);
        if let Some(run) = self.tools.remove(&tool_call) {
            self.running.kill(&Work::Hooks {
                tool_call,
                attempt: run.attempt,
            });
            self.running.kill(&Work::Tool {
                tool_call,
                attempt: run.attempt,
            });
        }
        self.live.touch();
    }

    fn count_deciders(&self, id: QuestionId) {
        let done = Done::cast(&self.me, move |count: Option<u32>| SessionMsg::Answered {
            id,
            answer: Box::new(Answer::Deciders(count.unwrap_or(0))),
        });
        self.services.feed.cast(FeedMsg::Deciders {
            sessions: self.watched_at(),
            done,
        });
    }

    fn add_rule(&self, grant: Grant, approval: ApprovalId, by: Principal) {
        let session = self.session;
        let done = Done::new(move |stored| match stored {
            Some(Ok(())) => {}
            Some(Err(why)) => tracing::warn!(%session, why, "could not store an always-rule"),
            None => tracing::warn!(%session, "an always-rule was lost: the gate is down"),
        });
        self.services.gate.cast(GateMsg::AddRule {
            grant,
            approval: Some(approval),
            by,
            done,
        });
    }
}
