//! The state of one loop, and the way of a decision through it.

use crate::commit::is_revocable;
use crate::compacting::Compacting;
use crate::error::LoopError;
use crate::jobs;
use crate::kit::Kit;
use crate::live::Live;
use crate::load::Folded;
use crate::outbox::{After, Asker, Batch, Outbox, waits_for_commit};
use crate::request::Requests;
use crate::rest::Rest;
use crate::services::Services;
use crate::side::Side;
use crate::stages::Track;
use crate::timers::Timers;
use crate::watched::Watched;
use crate::work::{ModelRun, Planned, Task, ToolRun};
use agentd_actor_kit::{Alarm, Earlier, Kids, SessionMsg, SupervisorMsg, Work};
use agentd_protocol::{CallId, Event, EventBody, SessionId, ToolCallId, ToolOutcome};
use agentd_store::{Blob, EncodedEvent, IdempotencyKey};
use agentd_tools::{FilesSeen, Jobs};
use agentd_transcript::Transcript;
use agentd_turn::{Agent, Effect, Input, Scene, Sizes};
use ractor::ActorRef;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A loop that lives.
#[derive(Debug)]
pub struct Shell {
    pub(crate) me: ActorRef<SessionMsg>,
    pub(crate) supervisor: ActorRef<SupervisorMsg>,
    pub(crate) services: Arc<Services>,
    pub(crate) session: SessionId,
    pub(crate) agent: Agent,
    pub(crate) transcript: Transcript,
    pub(crate) seen: Arc<FilesSeen>,
    /// Background jobs. They die with this loop.
    pub(crate) jobs: Jobs,
    pub(crate) requests: Requests,
    /// Its tools.
    pub(crate) kit: Kit,
    /// What they are between this turn and the next.
    pub(crate) next_kit: Option<Kit>,
    /// The servers are being asked.
    pub(crate) asking: bool,
    /// Servers of which a person was warned.
    pub(crate) warned: BTreeSet<String>,
    pub(crate) outbox: Outbox,
    /// Inputs that came up while another was carried out.
    pub(crate) follow: VecDeque<Task>,
    pub(crate) kids: Kids<Work>,
    pub(crate) model: Option<ModelRun>,
    /// The windows that models were found to have.
    pub(crate) windows: BTreeMap<String, u64>,
    /// The summary that a model writes.
    pub(crate) compacting: Option<Box<Compacting>>,
    /// What models are asked beside the turn.
    pub(crate) sides: BTreeMap<CallId, Side>,
    /// The next request is counted for this model.
    pub(crate) weighing: Option<(CallId, String)>,
    pub(crate) tools: BTreeMap<ToolCallId, ToolRun>,
    /// Calls that are being judged, or are allowed and not yet started. Boxed: the map keeps room for several, also when it
    /// is empty again.
    pub(crate) planned: BTreeMap<ToolCallId, Box<Planned>>,
    /// Results that hooks are being told of.
    pub(crate) told: BTreeMap<ToolCallId, (Box<ToolOutcome>, Vec<Blob>)>,
    /// What this session's hooks share.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) track: Track,
    pub(crate) runs: u32,
    pub(crate) timers: Timers,
    pub(crate) overdue: Option<Alarm>,
    pub(crate) appends: u64,
    pub(crate) live: Live,
    pub(crate) rest: Rest,
    /// Commands taken out of the mailbox.
    pub(crate) handled: u64,
    /// The conversation that the session goes back to.
    pub(crate) earlier: Option<Box<Earlier>>,
    /// The loop must stop, and why.
    pub(crate) stop: Option<&'static str>,
    pub(crate) watched: Watched,
}

impl Shell {
    pub(crate) fn new(
        me: ActorRef<SessionMsg>,
        supervisor: ActorRef<SupervisorMsg>,
        services: Arc<Services>,
        folded: Folded,
    ) -> Self {
        let head = folded.agent.durable().head;
        let places = services.hooks.places();
        let track = Track::new(services.stages.clone(), &folded.agent.durable().approvals);
        let jobs = jobs::keep(&me, folded.agent.durable().jobs_started);
        Self {
            me,
            supervisor,
            services,
            session: folded.session,
            agent: folded.agent,
            transcript: folded.transcript,
            seen: Arc::new(folded.seen),
            jobs,
            requests: Requests::new(folded.session, folded.system),
            kit: folded.kit,
            next_kit: None,
            asking: false,
            warned: BTreeSet::new(),
            outbox: Outbox::new(folded.session, folded.epoch, head),
            follow: VecDeque::new(),
            kids: Kids::default(),
            model: None,
            windows: BTreeMap::new(),
            compacting: None,
            sides: BTreeMap::new(),
            weighing: None,
            tools: BTreeMap::new(),
            planned: BTreeMap::new(),
            told: BTreeMap::new(),
            places,
            track,
            runs: 0,
            timers: Timers::default(),
            overdue: None,
            appends: 0,
            live: Live::default(),
            rest: Rest::default(),
            handled: 0,
            earlier: None,
            stop: None,
            watched: folded.watched,
        }
    }

    /// Gives the core an input and carries out what follows from it.
    pub(crate) async fn advance(&mut self, input: Input) -> Result<(), LoopError> {
        self.run(Task::of(input)).await
    }

    /// The same, with blobs or an asker.
    pub(crate) async fn run(&mut self, task: Task) -> Result<(), LoopError> {
        self.follow.push_back(task);
        self.run_followers().await
    }

    /// Works off the inputs that came up meanwhile.
    pub(crate) async fn run_followers(&mut self) -> Result<(), LoopError> {
        while let Some(task) = self.follow.pop_front() {
            for effect in self.decide(task)? {
                self.carry_out(effect).await;
            }
        }
        Ok(())
    }

    /// One decision: its events go into the outbox, and what may happen at once comes back.
    fn decide(&mut self, task: Task) -> Result<Vec<Effect>, LoopError> {
        let services = Arc::clone(&self.services);
        let windows = &self.windows;
        let facts = |name: &str| {
            let mut facts = services.models.facts(name)?;
            facts.window = windows
                .get(name)
                .map_or(facts.window, |found| facts.window.min(*found));
            Ok(facts)
        };
        let scene = Scene {
            stamp: services.clock.stamp(),
            models: &facts,
            input_tokens_estimate: self.transcript.estimate_tokens(),
            sizes: self.sizes(),
            prefix: self.requests.prefix_id(&self.transcript) ^ self.kit.id(),
        };
        let revocable = task.asker.is_some() && is_revocable(self.agent.durable());
        let step = self.agent.step(task.input, scene);
        let mut asker = task.asker;
        let key = match (&mut asker, &step.reply) {
            (Some((_, asked, key)), Some(Ok(reply))) => {
                let name = self
                    .agent
                    .durable()
                    .settings
                    .as_ref()
                    .map_or("", |settings| &settings.title);
                key.take().map(|mut key| {
                    asked.keep(&mut key, self.session, name, reply);
                    key
                })
            }
            _ => None,
        };
        if !step.events.is_empty() {
            self.keep(&step.events, (task.blobs, key, revocable))?;
        }
        let reply = asker.zip(step.reply).map(|((asker, ..), reply)| (asker, reply));
        if let Some((asker, reply)) = reply {
            match reply {
                // Nothing was changed, so nothing has to be durable.
                Err(fault) => asker.done.answer(Err(fault)),
                Ok(reply) => self.reply_after(asker, reply),
            }
        }
        Ok(step
            .effects
            .into_iter()
            .filter_map(|effect| self.due(effect))
            .collect())
    }

    fn sizes(&self) -> Sizes {
        let transcript = &self.transcript;
        let frame = if transcript.counted() {
            0
        } else {
            self.requests.frame_tokens()
        };
        Sizes {
            waiting_tokens: transcript.waiting_tokens(),
            frame_tokens: frame,
            messages: transcript.messages().len() as u64,
            longest_new_result: transcript.longest_new_result() as u64,
        }
    }

    fn reply_after(&mut self, asker: Asker, reply: agentd_turn::Reply) {
        if let Some(After::Reply(asker, reply)) = self.outbox.after(After::Reply(asker, Ok(reply))) {
            asker.done.answer(reply);
        }
    }

    /// What may be carried out now; the rest waits for the commit of its reason.
    fn due(&mut self, effect: Effect) -> Option<Effect> {
        if !waits_for_commit(&effect) {
            return Some(effect);
        }
        match self.outbox.after(After::Effect(effect)) {
            Some(After::Effect(effect)) => Some(effect),
            Some(After::Reply(..)) | None => None,
        }
    }

    /// Takes events into everything that is folded from them, and into the outbox. Each is encoded once.
    fn keep(
        &mut self,
        events: &[Event],
        (blobs, key, revocable): (Vec<Blob>, Option<IdempotencyKey>, bool),
    ) -> Result<(), LoopError> {
        let mut encoded = Vec::with_capacity(events.len());
        for event in events {
            encoded.push(EncodedEvent::encode(event).map_err(LoopError::Encode)?);
            self.watched.see(event);
            self.converse(event);
            self.learn(event);
            self.trace(event);
        }
        let summary = self.agent.summary(self.services.clock.now());
        self.outbox.stage(Batch {
            events: encoded,
            blobs,
            key,
            summary,
            revocable,
        });
        self.live.touch();
        Ok(())
    }

    fn learn(&mut self, event: &Event) {
        if FilesSeen::learns_from(&event.body) {
            Arc::make_mut(&mut self.seen).learn(&event.body);
        }
        if let EventBody::ToolFinished(finished) = &event.body {
            self.forget_plan(finished.tool_call);
        } else if let EventBody::TurnFinished(_) = &event.body {
            self.forget_plans();
            self.between_turns();
        } else if let EventBody::TurnStarted(_) = &event.body {
            self.warn_of_servers();
        } else if let (EventBody::SessionClosed(_), Some(remote)) = (&event.body, &self.services.remote) {
            remote.released(Path::new(&self.workdir()));
        }
    }

    /// The session's working directory.
    pub(crate) fn workdir(&self) -> String {
        self.agent
            .durable()
            .settings
            .as_ref()
            .map(|settings| settings.workdir.clone())
            .unwrap_or_default()
    }
}
