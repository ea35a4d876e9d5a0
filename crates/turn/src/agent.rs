//! The agent of one session: durable state, volatile state, and the way in.

use crate::config::Config;
use crate::durable::Durable;
use crate::effect::Step;
use crate::error::FoldError;
use crate::input::{Input, Scene};
use agentd_protocol::{Event, SessionId, Status, Summary, Timestamp};
use std::sync::Arc;

/// The agent of one session.
#[derive(Debug, Clone)]
pub struct Agent {
    pub(crate) config: Arc<Config>,
    pub(crate) durable: Durable,
}

impl Agent {
    /// The agent of a session without a log.
    #[must_use]
    pub fn new(session: SessionId, config: Arc<Config>) -> Self {
        Self {
            config,
            durable: Durable::new(session),
        }
    }
    /// The agent that a log tells of. Give it [`Input::Recover`] next.
    ///
    /// # Errors
    /// The log is not understood; the session is faulted.
    pub fn fold<'a>(
        session: SessionId,
        config: Arc<Config>,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<Self, FoldError> {
        let mut agent = Self::new(session, config);
        for event in events {
            agent.apply(event)?;
        }
        Ok(agent)
    }

    /// Goes on from a snapshot; events after it are applied with [`Self::apply`].
    #[must_use]
    pub fn from_snapshot(durable: Durable, config: Arc<Config>) -> Self {
        Self { config, durable }
    }

    /// Folds one more event of the log.
    ///
    /// # Errors
    /// The event does not follow from the log so far.
    pub fn apply(&mut self, _event: &Event) -> Result<(), FoldError> {
        Ok(())
    }

    /// Decides. The step's events are already applied to this agent.
    pub fn step(&mut self, _input: Input, _scene: Scene<'_>) -> Step {
        Step::default()
    }

    /// What the log says so far.
    #[must_use]
    pub fn durable(&self) -> &Durable {
        &self.durable
    }

    /// The derived state.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> Status {
        let _ = &self.config;
        Status {
            state: agentd_protocol::RunState::Queued,
            reason: String::new(),
            since: now,
            until: None,
            attempt: None,
        }
    }

    /// The list row: folded state, open approvals, queue, when to come back.
    #[must_use]
    pub fn summary(&self, now: Timestamp) -> Summary {
        let settings = self.durable.settings.as_ref();
        Summary {
            session: self.durable.session,
            name: settings.map(|s| s.title.clone()).unwrap_or_default(),
            status: self.status(now),
            model: settings.map(|s| s.model.clone()).unwrap_or_default(),
            mode: settings.map_or(agentd_protocol::PermissionMode::Default, |s| s.mode),
            workdir: settings.map(|s| s.workdir.clone()).unwrap_or_default(),
            labels: settings.map(|s| s.labels.clone()).unwrap_or_default(),
            seq: self.durable.head,
            steps: self.durable.totals.steps,
            usage: self.durable.totals.usage,
            cost_usd: self.durable.totals.cost_usd,
            created_at: self.durable.created_at,
            updated_at: self.durable.updated_at,
            parent: settings.and_then(|s| s.parent),
            turn: self.durable.turn.as_ref().map(|turn| turn.id),
            open_approvals: self.durable.approvals.clone(),
            queue: self
                .durable
                .inbox
                .iter()
                .map(|waiting| waiting.queued.clone())
                .collect(),
            budget: self.durable.budget(),
            last_error: self.durable.last.as_ref().and_then(|last| last.error.clone()),
            wake_at: None,
            resumable: false,
        }
    }

    /// Nothing runs and nothing is being judged: the actor may be passivated. Open approvals and long back-offs are at
    /// rest; `summary.wake_at` says when to come back.
    #[must_use]
    pub fn at_rest(&self) -> bool {
        true
    }

    /// Tool calls that run now.
    #[must_use]
    pub fn running_tools(&self) -> usize {
        0
    }
}
