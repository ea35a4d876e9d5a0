//! A running loop: the daemon's own pure part, driven by the schedule, with every event checked as it is decided.

use crate::messages::Order;
use crate::sides::Side;
use crate::world::World;
use agentd_actor_kit::{Done, Routed};
use agentd_policy::Judgement;
use agentd_protocol::{
    CallId, ContextCompacted, Event, EventBody, Fault, Message, Principal, RequestItem, SessionId,
    ToolCallId, ToolOutcome, Usage,
};
use agentd_session_loop::{Machine, Outside, Task};
use agentd_store::{EncodedEvent, IdempotencyKey};
use agentd_tools::{FilesSeen, Prepared};
use agentd_transcript::Transcript;
use agentd_turn::{Agent, Input, QuestionId, Reply, Violation, Witness};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tools in the requests of simulated sessions.
const TOOLS: [&str; 3] = ["Read", "Bash", "Task"];

/// A prepared call.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) question: QuestionId,
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
    pub(crate) id: QuestionId,
    pub(crate) plan: ContextCompacted,
    pub(crate) call: CallId,
    pub(crate) model: String,
    pub(crate) usage: Option<Usage>,
    pub(crate) worker: u64,
}

/// The loop of one session: the shipped [`Machine`], and the simulated work that it asks for.
#[derive(Debug)]
pub(crate) struct Hot {
    pub(crate) number: u64,
    pub(crate) session: SessionId,
    /// Its fencing number.
    pub(crate) epoch: u64,
    pub(crate) core: Machine,
    pub(crate) tools: BTreeMap<ToolCallId, u64>,
    pub(crate) planned: BTreeMap<ToolCallId, Planned>,
    pub(crate) compacting: Option<Compacting>,
    pub(crate) sides: BTreeMap<CallId, Side>,
    /// Results that are being passed to hooks.
    pub(crate) told: BTreeMap<ToolCallId, ToolOutcome>,
    pub(crate) jobs: BTreeMap<u32, u64>,
    pub(crate) last_job: u32,
    pub(crate) idle: u64,
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
        let (session, last_job) = (durable.session, durable.jobs_started);
        let shadow = agent.clone();
        Self {
            number,
            session,
            shadow,
            epoch,
            core: Machine::new(agent, epoch, transcript, FilesSeen::default()),
            tools: BTreeMap::new(),
            planned: BTreeMap::new(),
            compacting: None,
            sides: BTreeMap::new(),
            told: BTreeMap::new(),
            jobs: BTreeMap::new(),
            last_job,
            idle: 0,
            witness,
            sent: None,
        }
    }

    fn learn(&mut self, event: &Event) {
        if let EventBody::ToolFinished(finished) = &event.body {
            self.planned.remove(&finished.tool_call);
        } else if let EventBody::TurnFinished(_) = &event.body {
            self.planned.clear();
        }
    }
}

impl World {
    pub(crate) fn advance(&mut self, hot: &mut Hot, input: Input) {
        hot.core.push(Task::of(input));
        self.run_followers(hot);
    }

    pub(crate) fn run_followers(&mut self, hot: &mut Hot) {
        while let Some(task) = hot.core.next_task() {
            let stamp = self.dice.stamp(self.now);
            let models = |name: &str| self.here.models.facts(name);
            let outside = Outside {
                stamp,
                models: &models,
                frame_tokens: 200,
                prefix: hot.core.transcript().generation().rotate_left(32),
                tools: &|| TOOLS.map(|name| RequestItem::Tool { name: name.into() }).into(),
            };
            match hot.core.decide(task, outside) {
                Ok(decided) => {
                    self.sees(hot, &decided.events);
                    for effect in decided.effects {
                        self.carry_out(hot, effect);
                    }
                }
                Err(error) => self.fail(Violation::of("I1", error.to_string())),
            }
            if self.broken.is_some() {
                return;
            }
        }
    }

    /// Checks decided events, each on its own.
    fn sees(&mut self, hot: &mut Hot, events: &[Event]) {
        for event in events {
            if let Err(violation) = hot.witness.see(event).and_then(|()| self.book.sees(event)) {
                self.fail(violation);
            }
            match EncodedEvent::encode(event) {
                Ok(line) => self.fold(hot, &line, event),
                Err(error) => self.fail(Violation::of("I1", error.to_string())),
            }
            hot.learn(event);
            self.say(|| format!("loop {} event {} {}", hot.number, event.seq, event.body.kind()));
        }
        if hot.shadow.durable() != hot.core.agent().durable() {
            self.fail(Violation::of("fold", "the folded log is not the living state"));
        }
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

    /// A command on its way to its session.
    pub(crate) fn routed(&self, order: &Order) -> Routed {
        let by = match order.message {
            Some(_) => Principal::agentd(),
            None => ana(),
        };
        Routed {
            session: order.session,
            by,
            key: order.key.as_ref().map(|key| idempotency_key(key, order)),
            done: self.done(order),
            command: Box::new(order.command.clone()),
        }
    }

    /// The channel for the answer to a command.
    pub(crate) fn done(&self, order: &Order) -> Done<Result<Reply, Fault>> {
        let (answers, ticket) = (Arc::clone(&self.answers), order.ticket);
        Done::new(move |answer| {
            let mut answers = answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            answers.push((ticket, answer));
        })
    }
}

/// The principal of all commands.
pub(crate) fn ana() -> Principal {
    Principal::user("ana")
}

fn idempotency_key(key: &str, order: &Order) -> IdempotencyKey {
    IdempotencyKey {
        principal: ana(),
        key: key.to_owned(),
        method: crate::messages::name(&order.command),
        body_hash: [0; 32],
        answer: String::new(),
    }
}
