//! The state of one loop, and how it carries out a decision.

use crate::compacting::Compacting;
use crate::error::LoopError;
use crate::jobs;
use crate::live::Live;
use crate::load::Folded;
use crate::machine::{Decided, Machine, Outside};
use crate::request::Requests;
use crate::services::Services;
use crate::side::Side;
use crate::stages::Track;
use crate::toolset::Toolset;
use crate::watched::Watched;
use crate::work::{Planned, Task, ToolRun};
use agentd_actor_kit::{Alarm, SessionMsg, SupervisorMsg, Work, WorkerTable};
use agentd_protocol::{CallId, Event, EventBody, SessionId, ToolCallId, ToolOutcome};
use agentd_store::Blob;
use agentd_tools::Jobs;
use agentd_turn::{Input, TimerKey};
use ractor::ActorRef;
use std::collections::{BTreeMap, BTreeSet};
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
    /// The state that the session's log and messages determine.
    pub(crate) core: Machine,
    /// Background jobs. They end with this loop.
    pub(crate) jobs: Jobs,
    pub(crate) requests: Requests,
    /// The toolset in force.
    pub(crate) toolset: Toolset,
    /// The toolset that replaces it after this turn.
    pub(crate) next_kit: Option<Toolset>,
    /// Whether a request to the tool servers is open.
    pub(crate) asking: bool,
    /// Servers that a person was already warned about.
    pub(crate) warned: BTreeSet<String>,
    pub(crate) running: WorkerTable<Work>,
    /// The summary that a model writes.
    pub(crate) compacting: Option<Box<Compacting>>,
    /// Side calls to models.
    pub(crate) sides: BTreeMap<CallId, Side>,
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
    pub(crate) timers: BTreeMap<TimerKey, Alarm>,
    pub(crate) overdue: Option<Alarm>,
    pub(crate) live: Live,
    /// Asks whether the loop may go cold.
    pub(crate) idle: Option<Alarm>,
    pub(crate) watched: Watched,
}

impl Shell {
    pub(crate) fn new(
        me: ActorRef<SessionMsg>,
        supervisor: ActorRef<SupervisorMsg>,
        services: Arc<Services>,
        folded: Folded,
    ) -> Self {
        let places = services.hooks.places();
        let track = Track::new(services.stages.clone(), &folded.agent.durable().approvals);
        let jobs = jobs::keep(&me, folded.agent.durable().jobs_started);
        Self {
            me,
            supervisor,
            services,
            session: folded.session,
            core: Machine::new(folded.agent, folded.epoch, folded.transcript, folded.seen),
            jobs,
            requests: Requests::new(folded.session, folded.system),
            toolset: folded.toolset,
            next_kit: None,
            asking: false,
            warned: BTreeSet::new(),
            running: WorkerTable::default(),
            compacting: None,
            sides: BTreeMap::new(),
            tools: BTreeMap::new(),
            planned: BTreeMap::new(),
            told: BTreeMap::new(),
            places,
            track,
            runs: 0,
            timers: BTreeMap::new(),
            overdue: None,
            live: Live::default(),
            idle: None,
            watched: folded.watched,
        }
    }

    /// Gives the core an input and carries out the resulting effects.
    pub(crate) async fn advance(&mut self, input: Input) -> Result<(), LoopError> {
        self.run(Task::of(input)).await
    }

    /// The same, with blobs.
    pub(crate) async fn run(&mut self, task: Task) -> Result<(), LoopError> {
        self.core.push(task);
        self.run_followers().await
    }

    /// Processes the inputs that arose meanwhile.
    pub(crate) async fn run_followers(&mut self) -> Result<(), LoopError> {
        while let Some(task) = self.core.next_task() {
            let decided = self.decide(task)?;
            for event in &decided.events {
                self.watched.see(event);
                self.learn(event);
                self.trace(event);
            }
            if !decided.events.is_empty() {
                self.live.touch();
            }
            for effect in decided.effects {
                self.carry_out(effect).await;
            }
        }
        Ok(())
    }

    fn decide(&mut self, task: Task) -> Result<Decided, LoopError> {
        let models = |name: &str| self.services.models.facts(name);
        let toolset = &self.toolset;
        let outside = Outside {
            stamp: self.services.clock.stamp(),
            models: &models,
            frame_tokens: self.requests.frame_tokens(),
            prefix: self.requests.prefix_id(&self.core.transcript) ^ self.toolset.id(),
            tools: &|| toolset.items(),
        };
        self.core.decide(task, outside)
    }

    fn learn(&mut self, event: &Event) {
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
        self.core.workdir()
    }
}
