//! Everything around an agent: its log, workers, gate and timers. Checks the invariants at every step.

use crate::*;
use agentd_protocol::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A world with one agent in it.
#[derive(Clone)]
pub(super) struct World {
    pub(super) agent: Agent,
    shadow: Agent,
    pub(super) log: Vec<Event>,
    pub(super) now: u64,
    entropy: u64,
    /// Attempts whose workers run.
    pub(super) models: Vec<(CallId, u32)>,
    /// Calls at the gate.
    pub(super) judging: Vec<(ToolCallId, String)>,
    /// Calls whose workers run.
    pub(super) running: Vec<ToolCallId>,
    /// Set timers: generation and when they fire.
    pub(super) timers: BTreeMap<TimerKey, (u64, u64)>,
    pub(super) counting: Vec<ApprovalId>,
    pub(super) rules: Vec<Grant>,
    /// Pending requests to hooks.
    pub(super) asked: BTreeMap<QuestionId, LifecycleEvent>,
    /// Running work on the history.
    pub(super) reworking: Option<OpenHistory>,
    /// How often all jobs were killed.
    pub(super) jobs_killed: u32,
    /// Delegated calls, with the sessions that the shell must create.
    pub(super) children: Vec<(ToolCallId, SessionId)>,
    /// Sessions that must end.
    pub(super) stopped: Vec<SessionId>,
    pub(super) led: Vec<SessionId>,
    /// The reports of this session's end to its parent.
    pub(super) told: Vec<Ended>,
    /// The pending look-up of the tree's spending.
    pub(super) tree: Option<QuestionId>,
    /// Runs of each call since its last `tool.started`.
    runs: BTreeMap<ToolCallId, u32>,
    pub(super) idempotent: bool,
    pub(super) models_work: bool,
    /// Models whose configuration differs from [`plain`].
    pub(super) facts: BTreeMap<String, ModelFacts>,
    pub(super) tokens: u64,
    pub(super) sizes: Sizes,
    pub(super) prefix: u64,
    /// Parts of a request that a provider may refuse.
    pub(super) items: Items,
    /// The parameters of all attempts, in order.
    pub(super) starts: Vec<Start>,
    /// Requests for a shorter conversation.
    pub(super) shrinks: Vec<(QuestionId, Shrink, u64)>,
    /// Questions to models outside of the turn.
    pub(super) sides: Vec<SideCall>,
    /// Counts requested from the provider.
    pub(super) token_counts: Vec<QuestionId>,
    pub(super) recording: Vec<QuestionId>,
    /// All questions of this incarnation.
    pub(super) questions: Vec<(QuestionId, Question)>,
    /// The last step.
    pub(super) step: Step,
    /// The number of steps that had events.
    pub(super) appends: usize,
}

/// The parameters of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Start {
    pub(super) model: String,
    pub(super) credential: Option<String>,
    pub(super) thinking: Option<ThinkingLevel>,
    pub(super) without: Vec<RequestPart>,
    pub(super) left_out: Vec<RequestItem>,
    pub(super) window: Option<u64>,
    pub(super) insists: bool,
    pub(super) cache_hour: bool,
}

/// A model without special configuration.
pub(super) fn plain(name: &str) -> ModelFacts {
    ModelFacts {
        provider: "p".into(),
        model: format!("{name}-5"),
        credentials: vec!["main".into()],
        fallbacks: Vec::new(),
        thinking: None,
        window: 100_000,
        max_output: 10_000,
        min_cache_tokens: None,
        cache_hour: None,
        counts: false,
        images: true,
    }
}

pub(super) fn failure(class: FailureClass) -> ModelFailure {
    ModelFailure {
        status: Some(500),
        ..ModelFailure::new(class, "it failed")
    }
}

pub(super) fn created(limits: LoopLimits) -> SessionCreated {
    SessionCreated {
        title: "a title".into(),
        project: "p".into(),
        workdir: "/w".into(),
        model: "sonnet".into(),
        mode: PermissionMode::Default,
        agent: None,
        labels: Labels::new(),
        requires: [].into(),
        parent: None,
        limits,
        budget: Budget::default(),
        tools: ["Read", "Bash", "ExitPlanMode", "Plan"].map(str::to_owned).into(),
        system_prompt: None,
        append_system_prompt: None,
        rules: Vec::new(),
        lineage: None,
        prompt: None,
        derived_title: false,
        workspace: None,
    }
}

pub(super) fn config() -> Arc<Config> {
    Arc::new(Config {
        intent_patterns: crate::planning::intent_guard::sample_patterns(),
        ..Config::default()
    })
}

pub(super) fn ana() -> Principal {
    Principal::user("ana")
}

pub(super) fn says(text: &str) -> NewInput {
    NewInput {
        content: vec![Block::text(text)],
        delivery: None,
        key: None,
        model: None,
    }
}

pub(super) fn tool_use(name: &str, input: Value) -> Block {
    Block::ToolUse {
        id: "call_1".into(),
        name: name.into(),
        input,
    }
}

pub(super) fn answer_of(content: Vec<Block>, stop_reason: StopReason) -> ModelAnswer {
    ModelAnswer {
        content,
        stop_reason,
        usage: Usage {
            input: 80,
            output: 20,
            ..Usage::default()
        },
        cost_usd: Some(0.25),
        latency: Latency::default(),
        credential: None,
        reading: agentd_protocol::Reading::default(),
    }
}

pub(super) fn ok() -> ToolOutcome {
    ToolOutcome::text(ToolStatus::Ok, "fine")
}

impl World {
    /// A session created with these settings and no input.
    pub(super) fn idle(limits: LoopLimits) -> Self {
        Self::with(created(limits))
    }

    pub(super) fn with(created: SessionCreated) -> Self {
        Self::configured(created, config())
    }

    pub(super) fn configured(created: SessionCreated, config: Arc<Config>) -> Self {
        Self::of(SessionId::NIL, created, config)
    }

    /// A session with the given id.
    pub(super) fn of(session: SessionId, created: SessionCreated, config: Arc<Config>) -> Self {
        let agent = Agent::new(session, config);
        let mut world = Self {
            shadow: agent.clone(),
            agent,
            log: Vec::new(),
            now: 1_000_000,
            entropy: 0,
            models: Vec::new(),
            judging: Vec::new(),
            running: Vec::new(),
            timers: BTreeMap::new(),
            counting: Vec::new(),
            rules: Vec::new(),
            asked: BTreeMap::new(),
            reworking: None,
            jobs_killed: 0,
            children: Vec::new(),
            stopped: Vec::new(),
            led: Vec::new(),
            told: Vec::new(),
            tree: None,
            runs: BTreeMap::new(),
            idempotent: false,
            models_work: true,
            facts: BTreeMap::new(),
            tokens: 7,
            sizes: Sizes::default(),
            prefix: 1,
            items: Items::default(),
            starts: Vec::new(),
            shrinks: Vec::new(),
            sides: Vec::new(),
            token_counts: Vec::new(),
            recording: Vec::new(),
            questions: Vec::new(),
            step: Step::default(),
            appends: 0,
        };
        world
            .command(Command::Create {
                // A sub-agent is created with its task.
                first: created.lineage.is_some().then(|| says("do it")),
                created: Box::new(created),
            })
            .unwrap();
        world
    }

    /// A session with a turn that waits for its first answer.
    pub(super) fn running(limits: LoopLimits) -> Self {
        let mut world = Self::idle(limits);
        world.send("do it");
        world
    }

    pub(super) fn input(&mut self, input: Input) -> &Step {
        self.now += 10;
        self.entropy += 1;
        let works = self.models_work;
        let book = self.facts.clone();
        let items = self.items.clone();
        let models = move |name: &str| {
            if works {
                Ok(book.get(name).cloned().unwrap_or_else(|| plain(name)))
            } else {
                Err(TurnError {
                    class: "auth".into(),
                    message: "no key: set KEY".into(),
                })
            }
        };
        let scene = Scene {
            stamp: Stamp::new(Timestamp(self.now), self.entropy),
            models: &models,
            input_tokens_estimate: self.tokens,
            sizes: self.sizes,
            prefix: self.prefix,
            items: &|| items.clone(),
        };
        let step = self.agent.step(input, scene);
        for event in &step.events {
            self.shadow.apply(event).unwrap();
            if let EventBody::ToolStarted(started) = &event.body {
                self.runs.insert(started.tool_call, 0);
            }
        }
        assert_eq!(
            self.shadow.durable(),
            self.agent.durable(),
            "folding equals living"
        );
        self.appends += usize::from(!step.events.is_empty());
        self.log.extend(step.events.iter().cloned());
        for effect in &step.effects {
            self.carry_out(effect);
        }
        self.step = step;
        &self.step
    }

    fn carry_out(&mut self, effect: &Effect) {
        match effect.clone() {
            Effect::StartModel {
                call,
                attempt,
                model,
                credential,
                thinking,
                without,
                left_out,
                window,
                insists,
                cache_hour,
                ..
            } => {
                assert!(unanswered(&self.log).is_empty(), "i3: every call is answered");
                assert!(self.models.is_empty(), "one attempt at a time");
                assert!(self.shrinks.is_empty(), "the conversation is made shorter first");
                self.models.push((call, attempt));
                self.starts.push(Start {
                    model,
                    credential,
                    thinking,
                    without,
                    left_out,
                    window,
                    insists,
                    cache_hour,
                });
            }
            Effect::Ask { id, question } => self.asks(id, question),
            Effect::Withdraw { id } => self.withdrawn(id),
            Effect::KillModel { call, attempt } => self.models.retain(|model| *model != (call, attempt)),
            Effect::RunTool { tool_call, .. } => self.run(tool_call),
            effect @ (Effect::StartChild { .. }
            | Effect::StopChild { .. }
            | Effect::Lead { .. }
            | Effect::TellRoot) => self.of_family(&effect),
            Effect::KillJobs => self.jobs_killed += 1,
            Effect::KillTool { tool_call } => self.running.retain(|running| *running != tool_call),
            effect @ (Effect::SetTimer { .. } | Effect::ClearTimer { .. }) => self.of_timers(&effect),
            Effect::AddRule { grant, .. } => self.rules.push(grant),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the caller sends no other effect")]
    fn of_family(&mut self, effect: &Effect) {
        match *effect {
            Effect::StartChild { tool_call, child, .. } => {
                assert!(self.runs.contains_key(&tool_call), "i4: the intent is in the log");
                assert_eq!(child, child_of(self.agent.durable().session, tool_call));
                self.children.push((tool_call, child));
            }
            Effect::StopChild { child, .. } => self.stopped.push(child),
            Effect::Lead { child } => self.led.push(child),
            _ => {}
        }
    }

    fn of_timers(&mut self, effect: &Effect) {
        if let Effect::SetTimer {
            key,
            generation,
            after_ms,
        } = *effect
        {
            self.timers.insert(key, (generation, self.now + after_ms));
        } else if let Effect::ClearTimer { key } = effect {
            assert!(self.timers.remove(key).is_some(), "only set timers are cleared");
        }
    }

    fn asks(&mut self, id: QuestionId, question: Question) {
        assert!(self.agent.awaits(id), "its answer is waited for");
        self.questions.push((id, question.clone()));
        match question {
            Question::Verdict { tool_call, name, .. } => self.judging.push((tool_call, name)),
            Question::Hooks(event) => drop(self.asked.insert(id, event)),
            Question::Shorten {
                how, target_tokens, ..
            } => self.shrinks.push((id, how, target_tokens)),
            Question::Side(side) => self.sides.push(side),
            Question::TokenCount { .. } => self.token_counts.push(id),
            Question::TreeSpending { .. } => self.tree = Some(id),
            Question::Deciders { approval } => self.counting.push(approval),
            Question::Report { ended, .. } => self.told.push(*ended),
            Question::Rework(work) => {
                let recorded = self.log.iter().any(|event| event.seq == work.seq);
                assert!(recorded, "i4: the intent is in the log");
                assert!(self.reworking.is_none(), "one at a time");
                self.reworking = Some(*work);
            }
            Question::Checkpoint => self.recording.push(id),
            // Found in `questions`.
            Question::Setup => {}
        }
    }

    fn withdrawn(&mut self, id: QuestionId) {
        assert!(!self.agent.awaits(id), "its answer is not waited for");
        self.asked.remove(&id);
        self.shrinks.retain(|(asked, ..)| *asked != id);
        self.token_counts.retain(|asked| *asked != id);
        self.recording.retain(|asked| *asked != id);
        self.tree.take_if(|asked| *asked == id);
        let asked = self.questions.iter().find(|(asked, _)| *asked == id);
        match asked.expect("only what was asked is withdrawn").1.clone() {
            Question::Side(dropped) => self.sides.retain(|side| side.call != dropped.call),
            Question::Deciders { approval } => self.counting.retain(|asked| *asked != approval),
            _ => {}
        }
    }

    /// The last question of this kind, which may have been withdrawn.
    fn question(&self, which: impl Fn(&Question) -> bool) -> QuestionId {
        let mut asked = self.questions.iter().rev();
        asked
            .find(|(_, question)| which(question))
            .expect("it was asked")
            .0
    }

    pub(super) fn reply_to(&mut self, id: QuestionId, answer: Answer) -> &Step {
        self.input(Input::Answered { id, answer })
    }

    /// The gate's answer about a call.
    pub(super) fn judged(&mut self, call: ToolCallId, judged: Judged) -> &Step {
        let id =
            self.question(|asked| matches!(asked, Question::Verdict { tool_call, .. } if *tool_call == call));
        self.reply_to(id, Answer::Verdict(judged))
    }

    /// The number of viewers that may decide an approval.
    pub(super) fn deciders(&mut self, of: ApprovalId, count: u32) -> &Step {
        let id = self.question(|asked| matches!(asked, Question::Deciders { approval } if *approval == of));
        self.reply_to(id, Answer::Deciders(count))
    }

    /// The parent has the report.
    pub(super) fn reported(&mut self) -> &Step {
        let id = self.question(|asked| matches!(asked, Question::Report { .. }));
        self.reply_to(id, Answer::Report(true))
    }

    /// The answer of a model that was asked outside of the turn.
    pub(super) fn side_ended(&mut self, ended: SideEnded) -> &Step {
        let of = ended.call;
        let id = self.question(|asked| matches!(asked, Question::Side(side) if side.call == of));
        self.reply_to(id, Answer::Side(ended))
    }

    fn run(&mut self, tool_call: ToolCallId) {
        let runs = self
            .runs
            .get_mut(&tool_call)
            .expect("i4: the intent is in the log");
        *runs += 1;
        assert!(*runs == 1 || self.idempotent, "i4: an effect is not repeated");
        assert!(!self.running.contains(&tool_call));
        self.running.push(tool_call);
    }

    pub(super) fn command(&mut self, command: Command) -> Result<Reply, Fault> {
        self.input(Input::Command { command, by: ana() });
        self.step.reply.clone().expect("every command is answered")
    }

    pub(super) fn send(&mut self, text: &str) -> InputId {
        self.deliver(text, None).unwrap()
    }

    pub(super) fn deliver(&mut self, text: &str, delivery: Option<Delivery>) -> Result<InputId, Fault> {
        match self.command(Command::Send(NewInput {
            delivery,
            ..says(text)
        }))? {
            Reply::Sent { input, .. } => Ok(input),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn cancel(&mut self) -> Result<Reply, Fault> {
        self.command(Command::CancelTurn {
            expect: None,
            reason: None,
            jobs: false,
        })
    }

    pub(super) fn decide(&mut self, decision: Decision, scope: Scope) -> Result<Reply, Fault> {
        let approval = self.approval();
        self.command(Command::Decide {
            approval,
            decision,
            scope,
            answer: None,
            message: None,
            basis: Some(Basis::Policy),
        })
    }

    pub(super) fn approval(&self) -> ApprovalId {
        self.agent
            .durable()
            .approvals
            .first()
            .expect("an open approval")
            .approval
    }

    pub(super) fn answer(&mut self, content: Vec<Block>, stop: StopReason) -> &Step {
        self.answer_with(answer_of(content, stop))
    }

    pub(super) fn answer_with(&mut self, answer: ModelAnswer) -> &Step {
        let (call, attempt) = self.models.pop().expect("a model runs");
        self.input(Input::ModelAnswered {
            call,
            attempt,
            answer,
        })
    }

    pub(super) fn say(&mut self, text: &str) -> &Step {
        self.answer(vec![Block::text(text)], StopReason::EndTurn)
    }

    pub(super) fn call(&mut self, names: &[&str]) -> &Step {
        let calls = names
            .iter()
            .map(|name| tool_use(name, json!({"n": self.entropy})));
        let content = calls.collect();
        self.answer(content, StopReason::ToolUse)
    }

    pub(super) fn text(&mut self, text: &str) -> &Step {
        let (call, attempt) = *self.models.last().expect("a model runs");
        self.input(Input::ModelText {
            call,
            attempt,
            text: text.into(),
        })
    }

    pub(super) fn fail(&mut self, class: FailureClass) -> &Step {
        self.fail_with(class, None)
    }

    pub(super) fn fail_with(&mut self, class: FailureClass, retry_after_ms: Option<u64>) -> &Step {
        self.fail_as(ModelFailure {
            retry_after_ms,
            ..failure(class)
        })
    }

    pub(super) fn fail_as(&mut self, failure: ModelFailure) -> &Step {
        let (call, attempt) = self.models.pop().expect("a model runs");
        self.input(Input::ModelFailed {
            call,
            attempt,
            failure,
        })
    }

    /// The answer to the last request for a shorter conversation.
    pub(super) fn shrunk(&mut self, shrunk: Shrunk) -> &Step {
        let (id, ..) = self.shrinks.pop().expect("a shorter conversation is asked for");
        self.reply_to(id, Answer::Shortened(shrunk))
    }

    /// Makes the conversation as short as requested.
    pub(super) fn shrink(&mut self) -> &Step {
        let (_, how, tokens_after) = *self.shrinks.last().expect("a shorter conversation is asked for");
        let tokens_before = std::mem::replace(&mut self.tokens, tokens_after);
        self.shrunk(match how {
            Shrink::Compact => Shrunk::Compacted(ContextCompacted {
                from_seq: 1,
                to_seq: 2,
                summary: "s".into(),
                tokens_before,
                tokens_after,
                ..ContextCompacted::default()
            }),
            Shrink::Prune => Shrunk::Pruned(ContextPruned {
                to_seq: 2,
                results: 1,
                tokens_before,
                tokens_after,
            }),
            Shrink::Trim => Shrunk::Trimmed(ContextTrimmed {
                to_seq: 2,
                messages: 1,
                tokens_before,
                tokens_after,
            }),
            Shrink::TruncateResults | Shrink::CapResults => Shrunk::Truncated(ContextTruncated {
                max_result_bytes: 2_000,
                results: 1,
                tokens_before,
                tokens_after,
            }),
        })
    }

    /// The parameters of the last attempt.
    pub(super) fn start(&self) -> Start {
        self.starts.last().expect("an attempt was started").clone()
    }

    /// The remedies of the failures, in order.
    pub(super) fn remedies(&self) -> Vec<Option<Remedy>> {
        let failures = self.log.iter().filter_map(|event| match &event.body {
            EventBody::ModelFailed(failed) => Some(failed.remedy.clone()),
            _ => None,
        });
        failures.collect()
    }

    /// The warnings, in order.
    pub(super) fn warnings(&self) -> Vec<(String, String)> {
        let warnings = self.log.iter().filter_map(|event| match &event.body {
            EventBody::WarningRaised(raised) => Some((raised.code.clone(), raised.message.clone())),
            _ => None,
        });
        warnings.collect()
    }

    pub(super) fn backoff_ms(&self) -> u64 {
        let (_, at) = self.timers[&TimerKey::Backoff];
        at - self.now
    }

    pub(super) fn plan(&self, name: &str) -> CallPlan {
        let effect = match name {
            "Read" | "Ls" | "Grep" => EffectClass::Read,
            "Write" => EffectClass::Write,
            _ => EffectClass::Exec,
        };
        CallPlan {
            title: format!("{name}: it"),
            detail: "all of it".into(),
            effect,
            idempotent: self.idempotent,
            sandbox: SandboxLevel::None,
            scopes: vec![Scope::Once, Scope::Session, Scope::Always],
            grant: Some(format!("{name}(it)")),
            binding: Some(Binding {
                input: format!("the hash of {name}"),
                ..Binding::default()
            }),
            about: Box::new(About {
                reach: Some(reach()),
                ..About::default()
            }),
            loop_request: (name == "Task").then(|| {
                LoopRequest::Delegate(Delegation {
                    purpose: "a part".into(),
                    prompt: "do it".into(),
                    agent: None,
                })
            }),
        }
    }

    /// The gate's verdict on the next waiting call.
    pub(super) fn judge(&mut self, kind: VerdictKind) -> &Step {
        let (tool_call, name) = self.judging.remove(0);
        let verdict = Verdict {
            kind,
            rule: "mode:default".into(),
            reason: "so it is".into(),
        };
        let judged = Judged::Verdict {
            verdict,
            plan: self.plan(&name),
        };
        self.judged(tool_call, judged)
    }

    pub(super) fn judge_all(&mut self, kind: VerdictKind) {
        while !self.judging.is_empty() {
            self.judge(kind);
        }
    }

    pub(super) fn refuse(&mut self) -> &Step {
        let (tool_call, _) = self.judging.remove(0);
        let outcome = ToolOutcome::text(ToolStatus::Error, "there is no such tool");
        self.judged(tool_call, Judged::Refused(outcome))
    }

    pub(super) fn end_tool(&mut self, outcome: ToolOutcome) -> &Step {
        let tool_call = self.running.remove(0);
        self.input(Input::ToolEnded { tool_call, outcome })
    }

    /// Reports the spending of the rest of the tree.
    pub(super) fn look_up(&mut self, id: QuestionId, others: Spent, budget: Budget) -> &Step {
        self.tree = None;
        let spent = TreeSpent {
            wanted: true,
            others,
            budget,
            above: None,
        };
        self.reply_to(id, Answer::TreeSpending(spent))
    }

    /// The same without a budget, with the parent's state.
    pub(super) fn look_above(&mut self, mode: PermissionMode, paused: bool) -> &Step {
        let id = self.tree.take().unwrap();
        let spent = TreeSpent {
            wanted: true,
            others: Spent::default(),
            budget: Budget::default(),
            above: Some(Above { mode, paused }),
        };
        self.reply_to(id, Answer::TreeSpending(spent))
    }

    /// The parent does not wait any more.
    pub(super) fn look_in_vain(&mut self) -> &Step {
        let id = self.tree.take().unwrap();
        let spent = TreeSpent {
            wanted: false,
            others: Spent::default(),
            budget: Budget::default(),
            above: None,
        };
        self.reply_to(id, Answer::TreeSpending(spent))
    }

    /// A child reports its end.
    pub(super) fn end_child(&mut self, child: SessionId, reason: EndReason) -> Result<Reply, Fault> {
        let ended = Box::new(Ended {
            reason: Some(reason),
            text: "what it found".into(),
            error: None,
            spent: Spent {
                tokens: 5,
                usd: 0.5,
                time_ms: 5,
                steps: 1,
            },
        });
        self.command(Command::ChildEnded { child, ended })
    }

    /// One whole step with one allowed call and its result.
    pub(super) fn tool_step(&mut self, name: &str, input: Value, outcome: ToolOutcome) {
        self.answer(vec![tool_use(name, input)], StopReason::ToolUse);
        self.judge_all(VerdictKind::Allow);
        self.end_tool(outcome);
    }

    /// Fires the timer at its due time.
    pub(super) fn fire(&mut self, key: TimerKey) -> &Step {
        let (generation, at) = self
            .timers
            .remove(&key)
            .unwrap_or_else(|| panic!("{key:?} is not set"));
        self.now = self.now.max(at);
        self.input(Input::Timer { key, generation })
    }

    /// Crashes the daemon: all running work is lost, and the log is folded again.
    pub(super) fn crash(&mut self) {
        self.crash_at(self.log.len());
    }

    /// The same, with only a part of the log durable.
    pub(super) fn crash_at(&mut self, events: usize) {
        self.log.truncate(events);
        let config = Arc::clone(&self.agent.config);
        self.agent = Agent::fold(self.agent.durable().session, config, &self.log).unwrap();
        self.shadow = self.agent.clone();
        self.models.clear();
        self.judging.clear();
        self.running.clear();
        self.timers.clear();
        self.counting.clear();
        self.shrinks.clear();
        self.sides.clear();
        self.token_counts.clear();
        self.recording.clear();
        self.asked.clear();
        self.reworking = None;
        self.questions.clear();
        self.children.clear();
        self.stopped.clear();
        self.led.clear();
        self.told.clear();
        self.tree = None;
    }

    /// Restores files, the conversation, or both.
    pub(super) fn rework(&mut self, undoes: bool, rewind_to: Option<Seq>) -> Result<Reply, Fault> {
        let back = || FileBack {
            path: "a".into(),
            now: Some("1".into()),
            wanted: None,
            mode: None,
        };
        let work = HistoryStarted {
            files: undoes.then(back).into_iter().collect(),
            rewind_to,
            ..HistoryStarted::default()
        };
        let head = self.agent.durable().head;
        self.command(Command::Rework(Box::new(Rework { head, work })))
    }

    /// Ends that work.
    pub(super) fn reworked(&mut self, well: bool) -> &Step {
        self.reworking.take().expect("there is work on the history");
        let failed = || HistoryFailed {
            code: "E_UNDO_CONFLICT".into(),
            message: "a was changed".into(),
        };
        let applied = UndoApplied {
            undoes: Vec::new(),
            undoes_below: Vec::new(),
            undo_id: "u".into(),
            changes: Vec::new(),
            trees: None,
            paths: Vec::new(),
        };
        let reworked = if well {
            Reworked::Done(applied)
        } else {
            Reworked::Failed(failed())
        };
        let id = self.question(|asked| matches!(asked, Question::Rework(_)));
        self.reply_to(id, Answer::Rework(reworked))
    }

    pub(super) fn restart(&mut self) -> &Step {
        self.crash();
        self.input(Input::Recover)
    }

    /// The types of the last step's events.
    pub(super) fn kinds(&self) -> Vec<&'static str> {
        self.step.events.iter().map(|event| event.body.kind()).collect()
    }

    pub(super) fn state(&self) -> RunState {
        self.agent.status(Timestamp(self.now)).state
    }

    pub(super) fn summary(&self) -> Summary {
        self.agent.summary(Timestamp(self.now))
    }

    /// How the last turn of the log ended.
    pub(super) fn ended(&self) -> TurnFinished {
        let ends = self.log.iter().rev().filter_map(|event| match &event.body {
            EventBody::TurnFinished(finished) => Some(finished.clone()),
            _ => None,
        });
        ends.into_iter().next().expect("a turn ended")
    }

    pub(super) fn reason(&self) -> EndReason {
        self.ended().reason
    }

    pub(super) fn results(&self) -> Vec<(ToolStatus, String)> {
        let results = self.log.iter().filter_map(|event| match &event.body {
            EventBody::ToolFinished(finished) => {
                Some((finished.outcome.status, finished.outcome.llm_text.clone()))
            }
            _ => None,
        });
        results.collect()
    }

    pub(super) fn statuses(&self) -> Vec<ToolStatus> {
        self.results().into_iter().map(|(status, _)| status).collect()
    }

    pub(super) fn notes(&self) -> Vec<(NoteKind, String)> {
        let notes = self.log.iter().filter_map(|event| match &event.body {
            EventBody::NoteInjected(note) => Some((note.kind, note.text.clone())),
            _ => None,
        });
        notes.collect()
    }

    pub(super) fn limits_reached(&self) -> Vec<(LimitKind, String)> {
        let reached = self.log.iter().filter_map(|event| match &event.body {
            EventBody::LimitReached(reached) => Some((reached.limit, reached.action.clone())),
            _ => None,
        });
        reached.collect()
    }

    /// The inputs that joined, in order, per model call.
    pub(super) fn joined(&self) -> Vec<Vec<InputId>> {
        let joined = self.log.iter().filter_map(|event| match &event.body {
            EventBody::ModelStarted(started) => Some(started.inputs.clone()),
            _ => None,
        });
        joined.collect()
    }

    /// Completes everything successfully until nothing moves any more.
    pub(super) fn calm(&mut self) {
        for _ in 0..2_000 {
            if !self.models.is_empty() {
                self.say("Done.");
            } else if !self.shrinks.is_empty() {
                self.shrink();
            } else if !self.judging.is_empty() {
                self.judge(VerdictKind::Allow);
            } else if !self.running.is_empty() {
                self.end_tool(ok());
            } else if let Some(number) = self.tree {
                self.look_up(number, Spent::default(), Budget::default());
            } else if !self.told.is_empty() {
                self.told.clear();
                self.reported();
            } else if let Some(child) = self.agent.durable().children.keys().next().copied() {
                self.end_child(child, EndReason::Completed).unwrap();
            } else if self.reworking.is_some() {
                self.reworked(true);
            } else if let Some(approval) = self.counting.pop() {
                self.deciders(approval, 0);
            } else if !self.agent.durable().approvals.is_empty() {
                self.decide(Decision::Deny, Scope::Once).unwrap();
            } else if let Some(key) = self.timers.keys().next().copied() {
                self.fire(key);
            } else {
                return;
            }
        }
        panic!("it never comes to rest: {:?}", self.agent.durable());
    }

    /// Checks invariants of every log that has come to rest.
    pub(super) fn check_log(&self) {
        let mut witness = Witness::default();
        for event in &self.log {
            assert_eq!(witness.see(event), Ok(()), "{event:?}");
        }
        assert_eq!(
            unanswered(&self.log),
            BTreeSet::new(),
            "i3: every call has its result"
        );
        assert!(
            self.log
                .iter()
                .map(|event| event.seq)
                .eq(1..=self.log.len() as u64),
            "i2: no gap"
        );
        let (mut accepted, mut left, mut asked, mut decided) = (vec![], vec![], vec![], vec![]);
        let mut results = vec![];
        for event in &self.log {
            match &event.body {
                EventBody::InputAccepted(input) => accepted.push(input.input),
                EventBody::InputCancelled(input) => left.push(input.input),
                EventBody::ModelStarted(started) => left.extend(&started.inputs),
                EventBody::ApprovalAsked(approval) => asked.push(approval.approval),
                EventBody::ApprovalDecided(approval) => decided.push(approval.approval),
                EventBody::ToolFinished(finished) => results.push(finished.tool_call),
                _ => {}
            }
        }
        left.extend(
            self.agent
                .durable()
                .inbox
                .iter()
                .map(|waiting| waiting.queued.input),
        );
        decided.extend(self.agent.durable().approvals.iter().map(|open| open.approval));
        accepted.sort();
        left.sort();
        asked.sort();
        decided.sort();
        assert_eq!(
            accepted, left,
            "each accepted input joined once, was taken back, or waits"
        );
        assert_eq!(asked, decided, "each approval is decided once, or open");
        let unique: BTreeSet<_> = results.iter().copied().collect();
        assert_eq!(unique.len(), results.len(), "i3: one result for each call");
    }
}

/// Calls that the model requested and that have no result.
fn unanswered(log: &[Event]) -> BTreeSet<String> {
    let mut open = BTreeSet::new();
    for event in log {
        match &event.body {
            EventBody::ModelFinished(finished) => {
                open.extend(finished.content.iter().filter_map(|block| match block {
                    Block::ToolUse { id, .. } => Some(id.clone()),
                    _ => None,
                }));
            }
            EventBody::ToolFinished(finished) => {
                assert!(
                    open.remove(&finished.tool_call.to_string()),
                    "i3: a result for an open call"
                );
            }
            _ => {}
        }
    }
    open
}

/// How far a grant of the calls of [`World::plan`] reaches.
pub(super) fn reach() -> Reach {
    Reach {
        place: "/w".into(),
        files: [("it".to_owned(), "00".to_owned())].into(),
    }
}
