//! The state of one loop, and how it carries out a decision.

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
use agentd_actor_kit::{Alarm, Earlier, SessionMsg, SupervisorMsg, Work, WorkerTable};
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

/// A running loop.
#[derive(Debug)]
pub struct Shell {
    pub(crate) me: ActorRef<SessionMsg>,
    pub(crate) supervisor: ActorRef<SupervisorMsg>,
    pub(crate) services: Arc<Services>,
    pub(crate) session: SessionId,
    pub(crate) agent: Agent,
    pub(crate) transcript: Transcript,
    pub(crate) seen: Arc<FilesSeen>,
    /// Background jobs. They end with this loop.
    pub(crate) jobs: Jobs,
    pub(crate) requests: Requests,
    /// The toolset in force.
    pub(crate) kit: Kit,
    /// The toolset that replaces it after this turn.
    pub(crate) next_kit: Option<Kit>,
    /// Whether a request to the tool servers is open.
    pub(crate) asking: bool,
    /// Servers that a person was already warned about.
    pub(crate) warned: BTreeSet<String>,
    pub(crate) outbox: Outbox,
    /// Inputs that arose while another one was processed.
    pub(crate) follow: VecDeque<Task>,
    pub(crate) kids: WorkerTable<Work>,
    pub(crate) model: Option<ModelRun>,
    /// The context windows discovered for models.
    pub(crate) windows: BTreeMap<String, u64>,
    /// The summary that a model writes.
    pub(crate) compacting: Option<Box<Compacting>>,
    /// Side calls to models.
    pub(crate) sides: BTreeMap<CallId, Side>,
    /// The call whose next request is being counted, and the model's name.
    pub(crate) weighing: Option<(CallId, String)>,
    pub(crate) tools: BTreeMap<ToolCallId, ToolRun>,
    /// Calls that are being judged, or are allowed and not yet started. Boxed: the map reserves room for several, even when
    /// it is empty again.
    pub(crate) planned: BTreeMap<ToolCallId, Box<Planned>>,
    /// Results that hooks are being notified of.
    pub(crate) told: BTreeMap<ToolCallId, (Box<ToolOutcome>, Vec<Blob>)>,
    /// The permits that this session's hooks share.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) track: Track,
    pub(crate) runs: u32,
    pub(crate) timers: Timers,
    pub(crate) overdue: Option<Alarm>,
    pub(crate) appends: u64,
    pub(crate) live: Live,
    pub(crate) rest: Rest,
    /// The number of commands taken out of the mailbox.
    pub(crate) handled: u64,
    /// The earlier conversation that the session returns to.
    pub(crate) earlier: Option<Box<Earlier>>,
    /// The reason why the loop must stop, if it must.
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
            kids: WorkerTable::default(),
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

    /// Gives the core an input and carries out the resulting effects.
    pub(crate) async fn advance(&mut self, input: Input) -> Result<(), LoopError> {
        self.run(Task::of(input)).await
    }

    /// The same, with blobs or an answer channel.
    pub(crate) async fn run(&mut self, task: Task) -> Result<(), LoopError> {
        self.follow.push_back(task);
        self.run_followers().await
    }

    /// Processes the inputs that arose meanwhile.
    pub(crate) async fn run_followers(&mut self) -> Result<(), LoopError> {
        while let Some(task) = self.follow.pop_front() {
            for effect in self.decide(task)? {
                self.carry_out(effect).await;
            }
        }
        Ok(())
    }

    /// Makes one decision: its events go into the outbox, and the effects that may happen immediately are returned.
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
                // Nothing changed, so nothing has to become durable.
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

    /// Returns an effect that may be carried out now; the others wait for the commit of their cause.
    fn due(&mut self, effect: Effect) -> Option<Effect> {
        if !waits_for_commit(&effect) {
            return Some(effect);
        }
        match self.outbox.after(After::Effect(effect)) {
            Some(After::Effect(effect)) => Some(effect),
            Some(After::Reply(..)) | None => None,
        }
    }

    /// Adds events to all folded state and to the outbox. Each is encoded once.
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
