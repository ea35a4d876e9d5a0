//! Effects: schedules what the agent wants done.

use crate::hot::{Hot, Planned};
use crate::messages::{Happening, Message};
use crate::models::Call;
use crate::options::{Flaw, Knob};
use crate::tree_messages::What;
use crate::workers::Work;
use crate::world::World;
use agentd_policy::{Judgement, Request, judge};
use agentd_protocol::{
    Binding, CallId, Grant, HookEvent, HookFinished, HookStatus, PermissionMode, Reach, SandboxLevel,
    ToolCallId, ToolOutcome, ToolStatus, VerdictKind,
};
use agentd_session_loop::{Details, Task, loop_request, verdict};
use agentd_turn::{Answer, Effect, Input, Judged, ModelFailure, Question, QuestionId};
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
            Effect::KillModel { call, attempt } => self.kill_model(hot, (call, attempt)),
            Effect::Ask { id, question } => self.question(hot, id, question),
            Effect::Withdraw { id } => self.withdraw(hot, id),
            Effect::RunTool {
                tool_call,
                name,
                input,
                ..
            } => self.run_tool(hot, tool_call, &name, &input),
            Effect::KillTool { tool_call } => self.kill_tool(hot, tool_call),
            Effect::KillJobs => self.kill_jobs(hot),
            Effect::SetTimer {
                key,
                generation,
                after_ms,
            } => {
                let fires = Message::Timer { key, generation };
                self.post(after_ms, Happening::Loop(hot.number, fires));
            }
            Effect::AddRule { grant, .. } => self.add_rule(&grant.rule),
            // The machine ignores a cleared timer.
            Effect::ClearTimer { .. } => {}
            effect @ (Effect::StartChild { .. }
            | Effect::StopChild { .. }
            | Effect::Lead { .. }
            | Effect::TellRoot) => self.for_family(hot, effect),
        }
    }

    fn question(&mut self, hot: &mut Hot, id: QuestionId, question: Question) {
        if !hot.core.agent().awaits(id) {
            return;
        }
        match question {
            Question::Verdict {
                tool_call,
                name,
                input,
                grants,
            } => self.judge(hot, id, tool_call, (&name, &input), &grants),
            Question::Hooks(event) => {
                self.spawn(hot.number, hot.session, Work::Hooks(id, event.event()), 200);
            }
            Question::Shorten {
                how,
                target_tokens,
                summariser,
                ..
            } => self.shorten(hot, id, how, target_tokens, summariser),
            Question::Side(side) => self.start_side(hot, id, side),
            Question::TokenCount { .. } => {
                hot.core
                    .answer(id, Answer::Nobody("token counting is not configured".to_owned()));
            }
            Question::TreeSpending { root, parent } => self.message(hot, What::Look { id, root, parent }),
            Question::Deciders { approval: _ } => {
                let count = self.here.feed.deciders(hot.session);
                self.reply_to(hot.number, 5, id, Answer::Deciders(count));
            }
            Question::Report { parent, ended } => self.tell_parent(hot, id, parent, ended),
            Question::Rework(work) => {
                let to = work.started.rewind_to;
                self.spawn(hot.number, hot.session, Work::Rework { id, to }, 30);
            }
            Question::Checkpoint => {
                let taken = self.checkpoint();
                self.reply_to(hot.number, 400, id, Answer::Checkpoint(taken));
            }
            Question::Setup => {
                let prepared = self.prepare();
                self.reply_to(hot.number, 2_000, id, Answer::Setup(prepared));
            }
        }
    }

    fn withdraw(&mut self, hot: &mut Hot, id: QuestionId) {
        self.kill_where(|worker| {
            worker.owner == hot.number && matches!(worker.work, Work::Hooks(asking, _) if asking == id)
        });
        self.drop_side(hot, id);
        self.stop_shortening(hot, id);
    }

    /// Answers a question of a loop within a time.
    pub(crate) fn reply_to(&mut self, to: u64, within_ms: u64, id: QuestionId, answer: Answer) {
        let answer = Box::new(answer);
        self.tell(to, within_ms, Message::Answered { id, answer });
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
        let facts = match self.here.models.facts(model) {
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

    fn judge(
        &mut self,
        hot: &mut Hot,
        id: QuestionId,
        tool_call: ToolCallId,
        (name, input): (&str, &Value),
        grants: &[Grant],
    ) {
        let prepared = match self.registry.prepare(name, input) {
            Ok(prepared) => prepared,
            Err(outcome) => {
                return hot.core.answer(id, Answer::Verdict(Judged::Refused(outcome)));
            }
        };
        let said = self.gate(hot, &prepared, grants);
        hot.planned.insert(
            tool_call,
            Planned {
                question: id,
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

    fn gate(&self, hot: &Hot, prepared: &agentd_tools::Prepared, grants: &[Grant]) -> Judgement {
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
        let question = planned.question;
        let judged = verdict(
            &planned.prepared,
            judgement,
            Details::default(),
            SandboxLevel::None,
        );
        hot.core.answer(question, Answer::Verdict(judged));
        self.run_followers(hot);
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
        let question = planned.question;
        let judged = verdict(
            &planned.prepared,
            judgement,
            Details {
                binding,
                reach: Some(Reach::default()),
                ..Details::default()
            },
            SandboxLevel::None,
        );
        hot.core.answer(question, Answer::Verdict(judged));
        self.run_followers(hot);
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
