//! The pure part of a loop: what a message means for the session. It knows no actor, no runtime, no clock and no
//! randomness, so the simulator runs this same code under its seeds, with simulated stores, models and tools.
//!
//! Flow: a message becomes a [`Task`]; [`Machine::decide`] turns it into events, which go into the outbox, and into
//! effects, which the caller carries out; [`Machine::flush`] gives the next append, and [`Machine::stored`] releases the
//! effects and answers that waited for it.

mod admit;
mod commit;
mod keep;
mod model;
mod mutant;
mod outbox;
mod rest;

pub use commit::{Committed, LOST};
pub use mutant::Mutant;
pub use outbox::Lost;

pub(crate) use outbox::{Asker, Outbox};

use crate::error::LoopError;
use crate::work::{ModelRun, Task};
use agentd_protocol::{Event, RequestItem, Seq, SessionId, Stamp, ToolCallId, TurnError};
use agentd_tools::FilesSeen;
use agentd_transcript::Transcript;
use agentd_turn::{Agent, Answer, Effect, Input, Items, ModelFacts, QuestionId, Scene, Sizes, TimerKey};
use outbox::After;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The state of one loop that its log and its messages determine.
#[derive(Debug)]
pub struct Machine {
    session: SessionId,
    pub(crate) agent: Agent,
    pub(crate) transcript: Transcript,
    pub(crate) seen: Arc<FilesSeen>,
    pub(crate) outbox: Outbox,
    /// Inputs that were not processed yet.
    follow: VecDeque<Task>,
    model: Option<ModelRun>,
    /// The context windows discovered for models.
    windows: BTreeMap<String, u64>,
    /// The generation of each timer: a message of one that was cleared or set again may still be on its way.
    timers: BTreeMap<TimerKey, u64>,
    appends: u64,
    /// The number of commands taken out of the mailbox.
    handled: u64,
    draining: bool,
    /// The reason why the loop must stop, if it must.
    stop: Option<&'static str>,
    mutant: Option<Mutant>,
}

/// The facts about the world outside that a decision needs.
pub struct Outside<'a> {
    /// The time and the entropy of the decision.
    pub stamp: Stamp,
    /// The configured models.
    pub models: &'a dyn Fn(&str) -> Result<ModelFacts, TurnError>,
    /// The tokens around the conversation: the system prompt and the tools.
    pub frame_tokens: u64,
    /// Identifies the bytes before the conversation.
    pub prefix: u64,
    /// The tools that the next request describes, in its order.
    pub tools: &'a dyn Fn() -> Vec<RequestItem>,
}

impl std::fmt::Debug for Outside<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outside")
            .field("stamp", &self.stamp)
            .finish_non_exhaustive()
    }
}

/// The outcome of a decision.
#[derive(Debug)]
pub struct Decided {
    /// The events, which are in the outbox already.
    pub events: Vec<Event>,
    /// The effects that may be carried out now.
    pub effects: Vec<Effect>,
}

impl Machine {
    /// The machine of a session in this state, whose owner has this epoch.
    #[must_use]
    pub fn new(agent: Agent, epoch: u64, transcript: Transcript, seen: FilesSeen) -> Self {
        let (session, head) = (agent.durable().session, agent.durable().head);
        Self {
            session,
            agent,
            transcript,
            seen: Arc::new(seen),
            outbox: Outbox::new(session, epoch, head),
            follow: VecDeque::new(),
            model: None,
            windows: BTreeMap::new(),
            timers: BTreeMap::new(),
            appends: 0,
            handled: 0,
            draining: false,
            stop: None,
            mutant: None,
        }
    }

    /// The agent.
    #[must_use]
    pub const fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The conversation.
    #[must_use]
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The last durable seq.
    #[must_use]
    pub const fn durable_seq(&self) -> Seq {
        self.outbox.durable()
    }

    /// The number of commands taken out of the mailbox.
    #[must_use]
    pub const fn handled(&self) -> u64 {
        self.handled
    }

    /// The reason why the loop must stop, if it must.
    #[must_use]
    pub const fn stop(&self) -> Option<&'static str> {
        self.stop
    }

    /// The session's working directory.
    #[must_use]
    pub fn workdir(&self) -> String {
        let settings = self.agent.durable().settings.as_ref();
        settings
            .map(|settings| settings.workdir.clone())
            .unwrap_or_default()
    }

    /// Queues an input behind those that are not processed yet.
    pub fn push(&mut self, task: Task) {
        self.follow.push_back(task);
    }

    /// Takes the next input, for [`Machine::decide`].
    pub fn next_task(&mut self) -> Option<Task> {
        self.follow.pop_front()
    }

    /// Makes one decision: its events go into the outbox, and the effects that may happen immediately are returned.
    ///
    /// # Errors
    /// An event cannot be encoded.
    pub fn decide(&mut self, task: Task, outside: Outside<'_>) -> Result<Decided, LoopError> {
        self.learn_count(&task.input);
        let now = outside.stamp.at;
        let windows = &self.windows;
        let facts = |name: &str| {
            let mut facts = (outside.models)(name)?;
            let found = windows.get(name);
            facts.window = found.map_or(facts.window, |found| facts.window.min(*found));
            Ok(facts)
        };
        let transcript = &self.transcript;
        let items = || Items {
            images: transcript.images(),
            tools: (outside.tools)(),
        };
        let scene = Scene {
            stamp: outside.stamp,
            models: &facts,
            input_tokens_estimate: transcript.estimate_tokens(),
            sizes: Sizes {
                waiting_tokens: transcript.waiting_tokens(),
                frame_tokens: if transcript.counted() {
                    0
                } else {
                    outside.frame_tokens
                },
                messages: transcript.messages().len() as u64,
                longest_new_result: transcript.longest_new_result() as u64,
            },
            prefix: outside.prefix,
            items: &items,
        };
        let revocable = task.asker.is_some() && commit::is_revocable(self.agent.durable());
        let step = self.agent.step(task.input, scene);
        let mut asker = task.asker;
        let key = match (&mut asker, &step.reply) {
            (Some((_, asked, key)), Some(Ok(reply))) => {
                let settings = self.agent.durable().settings.as_ref();
                let name = settings.map_or("", |settings| &settings.title);
                key.take().map(|mut key| {
                    asked.keep(&mut key, self.session, name, reply);
                    key
                })
            }
            _ => None,
        };
        if !step.events.is_empty() {
            self.keep(&step.events, task.earlier, (task.blobs, key, revocable, now))?;
        }
        if let Some(((asker, ..), reply)) = asker.zip(step.reply) {
            self.reply(asker, reply);
        }
        let effects = step.effects.into_iter().filter_map(|effect| self.due(effect));
        Ok(Decided {
            effects: effects.collect(),
            events: step.events,
        })
    }

    /// A provider counted the next request: the estimate is its count from now on.
    fn learn_count(&mut self, input: &Input) {
        if let Input::Answered {
            id,
            answer: Answer::TokenCount { model, tokens },
        } = input
            && self.agent.awaits(*id)
        {
            self.transcript.counted_as(model, *tokens);
        }
    }

    /// The answer to a question of the agent.
    pub fn answer(&mut self, id: QuestionId, answer: Answer) {
        self.push(Task::of(Input::Answered { id, answer }));
    }

    /// Answers a command when its events are durable, or immediately when nothing changed.
    fn reply(&mut self, asker: Asker, reply: Result<agentd_turn::Reply, agentd_protocol::Fault>) {
        if reply.is_err() || self.has(Mutant::EarlyAnswer) {
            return asker.done.answer(reply);
        }
        if let Some(After::Reply(asker, reply)) = self.outbox.after(After::Reply(asker, reply)) {
            asker.done.answer(reply);
        }
        if self.outbox.is_full() {
            self.answer_urgent();
        }
    }

    /// Returns an effect that may be carried out now; the others wait for the commit of their cause.
    fn due(&mut self, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::SetTimer { key, generation, .. } => drop(self.timers.insert(key, generation)),
            Effect::ClearTimer { key } => drop(self.timers.remove(&key)),
            _ => {}
        }
        let early = self.has(Mutant::EarlyEffect)
            || self.has(Mutant::EarlyChild) && matches!(effect, Effect::StartChild { .. });
        if early || !outbox::waits_for_commit(&effect) {
            return Some(effect);
        }
        match self.outbox.after(After::Effect(effect)) {
            Some(After::Effect(effect)) => Some(effect),
            Some(After::Reply(..)) | None => None,
        }
    }

    /// Drops the start of a tool call that was killed before it could start.
    pub fn forget_run(&mut self, call: ToolCallId) {
        self.outbox.forget_run(call);
    }

    /// A timer fired. Ignores one that was cleared or set again in the meantime.
    pub fn fired(&mut self, key: TimerKey, generation: u64) {
        if self.timers.get(&key) == Some(&generation) {
            self.timers.remove(&key);
            if !(key == TimerKey::Backoff && self.has(Mutant::LostTimer)) {
                self.push(Task::of(Input::Timer { key, generation }));
            }
        }
    }
}
