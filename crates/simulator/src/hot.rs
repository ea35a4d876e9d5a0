//! A running loop, and the path of a decision through it. The pure part of the daemon's loop (outbox, actions that wait
//! for a commit, answers stored by key) is reused as it is; the part that actors do is replaced by the schedule.

use crate::messages::Order;
use crate::options::Flaw;
use crate::sides::Side;
use crate::world::World;
use agentd_actor_kit::Done;
use agentd_policy::Judgement;
use agentd_protocol::{
    CallId, ContextCompacted, Event, EventBody, Message, Principal, Seq, SessionId, ToolCallId, ToolOutcome,
    Usage,
};
use agentd_session_loop::{After, Asked, Asker, Batch, Outbox, is_revocable, waits_for_commit};
use agentd_store::{EncodedEvent, IdempotencyKey};
use agentd_tools::Prepared;
use agentd_transcript::Transcript;
use agentd_turn::{Agent, Effect, Input, Scene, Sizes, TimerKey, Violation, Witness};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A prepared call.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) prepared: Prepared,
    pub(crate) judgement: Option<Judgement>,
    /// The number of its hook worker while the hooks are asked.
    pub(crate) hooking: Option<u64>,
    /// The hooks have been asked.
    pub(crate) hooked: bool,
}

/// A summary that a model is writing.
#[derive(Debug)]
pub(crate) struct Compacting {
    pub(crate) id: (CallId, u32),
    pub(crate) plan: ContextCompacted,
    pub(crate) call: CallId,
    pub(crate) model: String,
    pub(crate) usage: Option<Usage>,
    pub(crate) kid: u64,
}

/// An input, with the caller that waits for an answer.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) input: Input,
    pub(crate) order: Option<Box<Order>>,
}

/// The loop of one session.
#[derive(Debug)]
pub(crate) struct Hot {
    pub(crate) number: u64,
    pub(crate) session: SessionId,
    pub(crate) agent: Agent,
    pub(crate) transcript: Transcript,
    pub(crate) outbox: Outbox,
    pub(crate) follow: VecDeque<Task>,
    pub(crate) model: Option<(CallId, u32, u64)>,
    pub(crate) tools: BTreeMap<ToolCallId, u64>,
    pub(crate) planned: BTreeMap<ToolCallId, Planned>,
    pub(crate) compacting: Option<Compacting>,
    pub(crate) sides: BTreeMap<CallId, Side>,
    /// Results that are being passed to hooks.
    pub(crate) told: BTreeMap<ToolCallId, ToolOutcome>,
    pub(crate) timers: BTreeMap<TimerKey, u64>,
    pub(crate) jobs: BTreeMap<u32, u64>,
    pub(crate) last_job: u32,
    pub(crate) appends: u64,
    /// The number of commands processed.
    pub(crate) handled: u64,
    pub(crate) idle: u64,
    pub(crate) draining: bool,
    pub(crate) windows: BTreeMap<String, u64>,
    pub(crate) earlier: Option<Box<Transcript>>,
    pub(crate) stop: Option<&'static str>,
    /// Checks everything that this loop decides.
    pub(crate) witness: Witness,
    /// Folds the encoded events; must always equal the agent.
    shadow: Agent,
    /// The last request to a model.
    pub(crate) sent: Option<(Vec<Arc<Message>>, u64)>,
}

impl Hot {
    pub(crate) fn new(
        number: u64,
        agent: Agent,
        epoch: u64,
        transcript: Transcript,
        witness: Witness,
    ) -> Self {
        let durable = agent.durable();
        let (session, head, last_job) = (durable.session, durable.head, durable.jobs_started);
        Self {
            number,
            session,
            shadow: agent.clone(),
            agent,
            transcript,
            outbox: Outbox::new(session, epoch, head),
            follow: VecDeque::new(),
            model: None,
            tools: BTreeMap::new(),
            planned: BTreeMap::new(),
            compacting: None,
            sides: BTreeMap::new(),
            told: BTreeMap::new(),
            timers: BTreeMap::new(),
            jobs: BTreeMap::new(),
            last_job,
            appends: 0,
            handled: 0,
            idle: 0,
            draining: false,
            windows: BTreeMap::new(),
            earlier: None,
            stop: None,
            witness,
            sent: None,
        }
    }

    pub(crate) fn workdir(&self) -> String {
        let settings = self.agent.durable().settings.as_ref();
        settings
            .map(|settings| settings.workdir.clone())
            .unwrap_or_default()
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            waiting_tokens: self.transcript.waiting_tokens(),
            frame_tokens: if self.transcript.counted() { 0 } else { 200 },
            messages: self.transcript.messages().len() as u64,
            longest_new_result: self.transcript.longest_new_result() as u64,
        }
    }

    fn converse(&mut self, event: &Event) {
        match (&event.body, self.earlier.take()) {
            (EventBody::SessionRewound(_), Some(earlier)) => self.transcript.replace(*earlier),
            (_, earlier) => {
                self.earlier = earlier;
                self.transcript.apply(event);
            }
        }
    }

    fn learn(&mut self, event: &Event) {
        if let EventBody::ToolFinished(finished) = &event.body {
            self.planned.remove(&finished.tool_call);
        } else if let EventBody::TurnFinished(_) = &event.body {
            self.planned.clear();
        }
    }

    /// Whether nothing runs, every decision is durable, and no answer is pending.
    pub(crate) fn quiet(&self) -> bool {
        self.agent.at_rest() && self.outbox.is_empty() && self.follow.is_empty()
    }
}

impl World {
    pub(crate) fn advance(&mut self, hot: &mut Hot, input: Input) {
        self.run(hot, Task { input, order: None });
    }

    pub(crate) fn run(&mut self, hot: &mut Hot, task: Task) {
        hot.follow.push_back(task);
        self.run_followers(hot);
    }

    pub(crate) fn run_followers(&mut self, hot: &mut Hot) {
        while let Some(task) = hot.follow.pop_front() {
            for effect in self.decide(hot, task) {
                self.carry_out(hot, effect);
            }
            if self.broken.is_some() {
                return;
            }
        }
    }

    fn decide(&mut self, hot: &mut Hot, task: Task) -> Vec<Effect> {
        let Task { input, order } = task;
        let windows = &hot.windows;
        let book = &self.models;
        let facts = |name: &str| {
            let mut facts = book.facts(name)?;
            facts.window = windows
                .get(name)
                .map_or(facts.window, |found| facts.window.min(*found));
            Ok(facts)
        };
        let scene = Scene {
            stamp: self.dice.stamp(self.now),
            models: &facts,
            input_tokens_estimate: hot.transcript.estimate_tokens(),
            sizes: hot.sizes(),
            prefix: hot.transcript.generation().rotate_left(32),
        };
        let revocable = order.is_some() && is_revocable(hot.agent.durable());
        let step = hot.agent.step(input, scene);
        let key = match (&order, &step.reply) {
            (Some(order), Some(Ok(reply))) => order.key.as_ref().map(|key| {
                let mut key = idempotency_key(key, order);
                Asked::of(&order.command).keep(&mut key, hot.session, "", reply);
                key
            }),
            _ => None,
        };
        if !step.events.is_empty() {
            self.keep(hot, &step.events, (key, revocable));
        }
        if let Some((order, reply)) = order.zip(step.reply) {
            let asker = self.asker(&order);
            match reply {
                Err(fault) => asker.done.answer(Err(fault)),
                Ok(reply) if self.disk.flaw == Flaw::EarlyAnswer => asker.done.answer(Ok(reply)),
                Ok(reply) => {
                    if let Some(After::Reply(asker, reply)) = hot.outbox.after(After::Reply(asker, Ok(reply)))
                    {
                        asker.done.answer(reply);
                    }
                }
            }
            self.take_answers();
        }
        step.effects
            .into_iter()
            .filter_map(|effect| self.due(hot, effect))
            .collect()
    }

    /// The effect if it may be executed now; otherwise it waits for the commit of its cause.
    fn due(&self, hot: &mut Hot, effect: Effect) -> Option<Effect> {
        let early = match self.disk.flaw {
            Flaw::EarlyEffect => true,
            Flaw::EarlyChild => matches!(effect, Effect::StartChild { .. }),
            _ => false,
        };
        if early || !waits_for_commit(&effect) {
            return Some(effect);
        }
        match hot.outbox.after(After::Effect(effect)) {
            Some(After::Effect(effect)) => Some(effect),
            Some(After::Reply(..)) | None => None,
        }
    }

    /// Folds events into all derived state and stages them in the outbox; checks each independently.
    fn keep(&mut self, hot: &mut Hot, events: &[Event], (key, revocable): (Option<IdempotencyKey>, bool)) {
        let mut encoded = Vec::with_capacity(events.len());
        for event in events {
            if let Err(violation) = hot.witness.see(event).and_then(|()| self.book.sees(event)) {
                self.fail(violation);
            }
            match EncodedEvent::encode(event) {
                Ok(line) => {
                    self.fold(hot, &line, event);
                    encoded.push(line);
                }
                Err(error) => self.fail(Violation::of("I1", format!("{error}"))),
            }
            hot.converse(event);
            hot.learn(event);
            self.say(|| format!("loop {} event {} {}", hot.number, event.seq, event.body.kind()));
        }
        if hot.shadow.durable() != hot.agent.durable() {
            self.fail(Violation::of("fold", "the folded log is not the living state"));
        }
        let mut summary = hot.agent.summary(self.now);
        if self.disk.flaw == Flaw::Forgotten {
            summary.resumable = false;
        }
        hot.outbox.stage(Batch {
            events: encoded,
            blobs: Vec::new(),
            key,
            summary,
            revocable,
        });
    }

    /// Checks that an event decodes to itself and that folding it gives the live state.
    fn fold(&mut self, hot: &mut Hot, line: &EncodedEvent, event: &Event) {
        match EncodedEvent::decode(&line.body) {
            Ok(read) if read == *event => {
                if let Err(error) = hot.shadow.apply(&read) {
                    self.fail(Violation::of("fold", error.to_string()));
                }
            }
            Ok(_) => {
                let what = format!("event {} is another one when it is read back", event.body.kind());
                self.fail(Violation::of("fold", what));
            }
            Err(error) => self.fail(Violation::of("fold", error.to_string())),
        }
    }

    pub(crate) fn asker(&self, order: &Order) -> Asker {
        let (answers, ticket) = (Arc::clone(&self.answers), order.ticket);
        Asker {
            done: Done::new(move |answer| {
                let mut answers = answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                answers.push((ticket, answer));
            }),
            keyed: order.key.is_some(),
            urgent: false,
        }
    }

    /// The seq up to which this session's log is known to be durable.
    pub(crate) fn durable(hot: &Hot) -> Seq {
        hot.outbox.durable()
    }
}

/// The principal of all commands.
pub(crate) fn ana() -> Principal {
    Principal::user("ana")
}

pub(crate) fn idempotency_key(key: &str, order: &Order) -> IdempotencyKey {
    IdempotencyKey {
        principal: ana(),
        key: key.to_owned(),
        method: crate::messages::name(&order.command),
        body_hash: [0; 32],
        answer: String::new(),
    }
}
