//! Effects: schedules what the agent wants done.

use crate::hot::{Hot, Planned};
use crate::messages::{Happening, Message};
use crate::models::Call;
use crate::options::{Flaw, Knob};
use crate::workers::Work;
use crate::world::World;
use agentd_policy::{Judgement, Request, judge};
use agentd_protocol::{
    ApprovalId, Binding, CallId, HookEvent, HookFinished, HookStatus, PermissionMode, SandboxLevel,
    ToolCallId, ToolOutcome, ToolStatus, VerdictKind,
};
use agentd_session_loop::{Task, loop_request, verdict};
use agentd_turn::{Effect, Input, Judged, LifecycleEvent, ModelFailure};
use serde_json::Value;

impl World {
    pub(crate) fn carry_out(&mut self, hot: &mut Hot, effect: Effect) {
        match effect {
            Effect::StartModel {
                call,
                attempt,
                model,
                credential,
                insists,
                ..
            } => self.start_model(hot, (call, attempt), &model, (credential, insists)),
            effect @ (Effect::Shrink { .. } | Effect::StopShrinking { .. }) => self.resize(hot, effect),
            Effect::KillModel { call, attempt } => self.kill_model(hot, (call, attempt)),
            Effect::Judge {
                tool_call,
                name,
                input,
                grants,
            } => self.judge(hot, tool_call, &name, &input, &grants),
            Effect::RunTool {
                tool_call,
                name,
                input,
                ..
            } => self.run_tool(hot, tool_call, &name, &input),
            Effect::KillTool { tool_call } => self.kill_tool(hot, tool_call),
            Effect::Rework { work } => {
                let work = Work::Rework {
                    seq: work.seq,
                    to: work.started.rewind_to,
                };
                self.spawn(hot.number, hot.session, work, 30);
            }
            Effect::KillJobs => self.kill_jobs(hot),
            Effect::SetTimer {
                key,
                generation,
                after_ms,
            } => {
                let fires = Message::Timer { key, generation };
                self.post(after_ms, Happening::Loop(hot.number, fires));
            }
            Effect::CountDeciders { approval } => self.count_deciders(hot, approval),
            Effect::AskHooks { number, topic } => self.ask_hooks(hot, number, &topic),
            Effect::DropHooks { number } => {
                self.kill_where(|worker| {
                    worker.owner == hot.number
                        && matches!(worker.work, Work::Hooks(asking, _) if asking == number)
                });
            }
            Effect::AddRule { rule, .. } => self.add_rule(&rule),
            Effect::StartSide(side) => self.start_side(hot, side),
            Effect::DropSide { call } => self.drop_side(hot, call),
            // The machine ignores a cleared timer. Token counting is not configured.
            Effect::ClearTimer { .. } | Effect::CountTokens { .. } | Effect::DropCount { .. } => {}
            effect @ (Effect::StartChild { .. }
            | Effect::StopChild { .. }
            | Effect::Lead { .. }
            | Effect::TellParent { .. }
            | Effect::TellRoot
            | Effect::AskTree { .. }) => self.for_family(hot, effect),
        }
    }

    fn kill_tool(&mut self, hot: &mut Hot, tool_call: ToolCallId) {
        hot.core.forget_run(tool_call);
        if let Some(worker) = hot.planned.remove(&tool_call).and_then(|planned| planned.hooking) {
            self.kill(worker);
        }
        hot.told.remove(&tool_call);
        if let Some(worker) = hot.tools.remove(&tool_call)
            && self.disk.flaw != Flaw::Orphan
        {
            self.kill(worker);
        }
    }

    fn count_deciders(&mut self, hot: &Hot, approval: ApprovalId) {
        let count = self.feed.deciders(hot.session);
        self.tell(hot.number, 5, Message::Deciders { approval, count });
    }

    fn kill_model(&mut self, hot: &mut Hot, id: (CallId, u32)) {
        hot.core.drop_model(id);
        self.kill_call(hot, id);
    }

    /// Kills the worker of a model call.
    pub(crate) fn kill_call(&mut self, hot: &Hot, id: (CallId, u32)) {
        self.kill_where(|worker| {
            worker.owner == hot.number && matches!(&worker.work, Work::Model(call) if call.id == id)
        });
    }

    fn start_model(
        &mut self,
        hot: &mut Hot,
        (call, attempt): (CallId, u32),
        model: &str,
        (credential, insists): (Option<String>, bool),
    ) {
        if let Err(violation) = hot
            .witness
            .asks_model(call, attempt)
            .and_then(|()| self.may_go_on(hot.core.agent()))
            .and_then(|()| self.sends(hot))
        {
            return self.fail(violation);
        }
        let facts = match self.models.facts(model) {
            Ok(facts) => facts,
            Err(error) => {
                let failure = ModelFailure::new(agentd_protocol::FailureClass::InvalidRequest, error.message);
                return hot.core.could_not_start((call, attempt), failure);
            }
        };
        let call_of = Call::new(
            (call, attempt),
            &facts,
            hot.core.transcript().estimate_tokens(),
            (credential, insists),
        );
        self.spawn(hot.number, hot.session, Work::Model(Box::new(call_of)), 2);
        hot.core.model_started((call, attempt));
    }

    /// Checks a request: it is sound, and the previous request is its prefix.
    fn sends(&self, hot: &mut Hot) -> agentd_turn::Held {
        let (messages, generation) = (
            hot.core.transcript().messages(),
            hot.core.transcript().generation(),
        );
        agentd_turn::sound_request(messages)?;
        if let Some((before, then)) = &hot.sent {
            agentd_turn::stable_prefix((before, *then), (messages, generation))?;
        }
        hot.sent = Some((messages.to_vec(), generation));
        Ok(())
    }

    fn judge(&mut self, hot: &mut Hot, tool_call: ToolCallId, name: &str, input: &Value, grants: &[String]) {
        let prepared = match self.registry.prepare(name, input) {
            Ok(prepared) => prepared,
            Err(outcome) => {
                let judged = Judged::Refused(outcome);
                let input = Input::Judged { tool_call, judged };
                return hot.core.push(Task::of(input));
            }
        };
        let said = self.gate(hot, &prepared, grants);
        hot.planned.insert(
            tool_call,
            Planned {
                prepared,
                judgement: None,
                hooking: None,
                hooked: false,
            },
        );
        if self.chance(Knob::Gate, 100) {
            // If the gate is down, its caller gets an error. If it is stuck, there is no answer at all.
            if self.dice.percent(50) {
                let judgement = None;
                self.tell(hot.number, 20, Message::Judged { tool_call, judgement });
            }
            return;
        }
        self.book.gate_says(hot.session, tool_call, said.verdict.kind);
        let judgement = Some(Box::new(said));
        self.tell(hot.number, 20, Message::Judged { tool_call, judgement });
    }

    fn gate(&self, hot: &Hot, prepared: &agentd_tools::Prepared, grants: &[String]) -> Judgement {
        let settings = hot.core.agent().durable().settings.as_ref();
        let workdir = hot.core.workdir();
        let request = Request {
            tool: &prepared.name,
            subject: &prepared.subject,
            effect: prepared.effect,
            mode: settings.map_or(PermissionMode::Default, |settings| settings.mode),
            workdir: &workdir,
        };
        match self.rules.with(grants) {
            Ok(policy) => judge(&policy, &request),
            Err(error) => Judgement::denied("gate:error", &error.to_string()),
        }
    }

    /// Handles the gate's verdict, or its crash without one.
    pub(crate) fn gate_spoke(&mut self, hot: &mut Hot, tool_call: ToolCallId, said: Option<Box<Judgement>>) {
        if !hot.planned.contains_key(&tool_call) {
            return;
        }
        let judgement = match said {
            Some(said) => *said,
            None if self.disk.flaw == Flaw::OpenGate => {
                let mut open = Judgement::denied("gate:error", "the permission gate did not answer");
                open.verdict.kind = VerdictKind::Allow;
                open
            }
            None => Judgement::denied("gate:error", "the permission gate did not answer"),
        };
        if !self.ask_before(hot, tool_call, &judgement) {
            self.judged(hot, tool_call, judgement);
        }
    }

    /// Handles the combined verdict of the gate and the hooks.
    pub(crate) fn judged(&mut self, hot: &mut Hot, tool_call: ToolCallId, judgement: Judgement) {
        let Some(planned) = hot.planned.get_mut(&tool_call) else {
            return;
        };
        if judgement.verdict.kind == VerdictKind::Ask {
            planned.judgement = Some(judgement);
            let known = !self.chance(Knob::Gate, 200);
            return self.tell(hot.number, 20, Message::Detailed { tool_call, known });
        }
        let judged = verdict(
            &planned.prepared,
            judgement,
            (String::new(), None),
            SandboxLevel::None,
        );
        self.advance(hot, Input::Judged { tool_call, judged });
    }

    /// Handles the exact detail of a call to be asked about, or the failure to determine it.
    pub(crate) fn detailed(&mut self, hot: &mut Hot, tool_call: ToolCallId, known: bool) {
        let Some(planned) = hot.planned.get_mut(&tool_call) else {
            return;
        };
        let Some(judgement) = planned.judgement.take() else {
            return;
        };
        let binding = known.then(|| Binding {
            input: planned.prepared.title.clone(),
            ..Binding::default()
        });
        let judgement = match &binding {
            Some(_) => judgement,
            None => Judgement::denied(
                "gate:unbound",
                "agentd could not determine what the call would do",
            ),
        };
        let judged = verdict(
            &planned.prepared,
            judgement,
            (String::new(), binding),
            SandboxLevel::None,
        );
        self.advance(hot, Input::Judged { tool_call, judged });
    }

    pub(crate) fn run_tool(&mut self, hot: &mut Hot, tool_call: ToolCallId, name: &str, input: &Value) {
        if let Err(violation) = hot.witness.runs_tool(tool_call, hot.core.durable_seq()) {
            return self.fail(violation);
        }
        let prepared = match hot.planned.remove(&tool_call) {
            Some(planned) => planned.prepared,
            None => match self.registry.prepare(name, input) {
                Ok(prepared) => prepared,
                Err(outcome) => return ended(hot, tool_call, outcome),
            },
        };
        if loop_request(&prepared).is_some() {
            let text = "a call that the loop answers was run";
            return self.fail(agentd_turn::Violation::of("I3", text));
        }
        if let Err(violation) = self.book.runs(hot.session, tool_call, prepared.idempotent) {
            return self.fail(violation);
        }
        let worker = self.spawn(
            hot.number,
            hot.session,
            Work::Tool {
                tool_call,
                effect: prepared.effect,
            },
            10,
        );
        hot.tools.insert(tool_call, worker);
    }

    fn kill_jobs(&mut self, hot: &mut Hot) {
        for (job, worker) in std::mem::take(&mut hot.jobs) {
            self.kill(worker);
            let end = agentd_turn::JobEnd::Exited {
                exit_code: None,
                signal: Some(15),
                stopped: Some("it was stopped".into()),
            };
            self.tell(hot.number, 500, Message::JobEnded { job, end });
        }
    }

    fn ask_hooks(&mut self, hot: &Hot, number: u64, topic: &LifecycleEvent) {
        if hot.core.agent().awaits_hooks(number) {
            self.spawn(hot.number, hot.session, Work::Hooks(number, topic.event()), 200);
        }
    }

    /// The hooks' results: mostly nothing.
    pub(crate) fn hooks_said(&mut self, event: HookEvent) -> Vec<HookFinished> {
        if !self.chance(Knob::Hooks, 100) {
            return Vec::new();
        }
        vec![HookFinished {
            tool_call: None,
            prompt: None,
            hook: "h".into(),
            event,
            status: HookStatus::Blocked,
            decision: Some(VerdictKind::Deny),
            reason: Some("not so".into()),
            input: None,
            context: self.dice.percent(30).then(|| "by the way".into()),
            output: None,
            replaced: None,
            duration_ms: 3,
        }]
    }

    pub(crate) fn tell(&mut self, to: u64, within_ms: u64, message: Message) {
        let after = self.dice.between(1, within_ms.max(1));
        self.post(after, Happening::Loop(to, message));
    }
}

fn ended(hot: &mut Hot, tool_call: ToolCallId, outcome: ToolOutcome) {
    let input = Input::ToolEnded { tool_call, outcome };
    hot.core.push(Task::of(input));
}

/// The result of a tool whose worker died.
pub(crate) fn died() -> ToolOutcome {
    ToolOutcome::text(ToolStatus::Error, "the tool panicked: as it was told").coded("E_TOOL")
}
