//! The agent of one session: durable state, volatile state, and the entry points `step` and `apply`.

use crate::config::Config;
use crate::decide;
use crate::draft::Draft;
use crate::durable::fold_error::FoldError;
use crate::durable::{Durable, Phase};
use crate::effect::Step;
use crate::input::{Input, Scene, TimerKey};
use crate::questions::{QuestionId, Subject};
use crate::volatile::Volatile;
use agentd_protocol::{Event, SessionId};
use std::sync::Arc;

/// A longer back-off counts as rest: the actor may be passivated and woken at `summary.wake_at`.
const LONG_BACKOFF_MS: u64 = 30_000;

/// The agent of one session.
#[derive(Debug, Clone)]
pub struct Agent {
    pub(crate) config: Arc<Config>,
    pub(crate) durable: Durable,
    pub(crate) volatile: Volatile,
}

impl Agent {
    /// The agent of a session without a log.
    #[must_use]
    pub fn new(session: SessionId, config: Arc<Config>) -> Self {
        Self {
            config,
            durable: Durable::new(session),
            volatile: Volatile::default(),
        }
    }

    /// Builds the agent from its log. Give it [`Input::Recover`] next.
    ///
    /// # Errors
    /// The log cannot be interpreted; the session is faulted.
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

    /// Folds one more event of the log.
    ///
    /// # Errors
    /// The event does not follow from the log so far.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        self.durable.apply(event)
    }

    /// Decides what follows from an input. The step's events are already applied to this agent.
    pub fn step(&mut self, input: Input, scene: Scene<'_>) -> Step {
        let mut draft = Draft::new(self, scene);
        decide::decide(&mut draft, input);
        draft.finish()
    }

    /// The session's workspace is not on this machine: no turn gets a model call from this agent.
    pub fn lose_workspace(&mut self, why: String) {
        self.volatile.lost_workspace = Some(why);
    }

    /// Starts nothing new here: what a person ends may end, and the rest goes on elsewhere.
    pub const fn only_end(&mut self) {
        self.volatile.draining = true;
        self.volatile.only_ends = true;
    }

    /// The state folded from the log so far.
    #[must_use]
    pub fn durable(&self) -> &Durable {
        &self.durable
    }

    /// Nothing is running (background jobs included) and nothing is being judged: the actor may be passivated. Open
    /// approvals and long back-offs count as rest; `summary.wake_at` says when to wake it.
    #[must_use]
    pub fn at_rest(&self) -> bool {
        let volatile = &self.volatile;
        let watches = volatile
            .timers
            .keys()
            .any(|key| matches!(key, TimerKey::Unattended(_)));
        // The next incarnation reports again.
        let asks = |subject: &Subject| !(volatile.reports_later() && *subject == Subject::Report);
        if volatile.live.is_some() || watches || volatile.questions.subjects().any(asks) {
            return false;
        }
        if !self.durable.jobs.is_empty() || self.durable.history.is_some() {
            return false;
        }
        let here = |call: &crate::OpenCall| {
            call.is_running() && !crate::tree::delegate::is_child(&self.durable, call)
        };
        let runs = self.durable.open_calls().any(here);
        if runs {
            return false;
        }
        let held = volatile.draining || self.durable.paused.is_some();
        match self.durable.turn.as_ref().map(|turn| &turn.phase) {
            Some(Phase::Streaming(_)) => false,
            Some(
                phase @ Phase::BackingOff {
                    failed_at, retry_at, ..
                },
            ) => held || phase.parked() || retry_at.since_ms(*failed_at) > LONG_BACKOFF_MS,
            Some(
                Phase::Ready
                | Phase::GaveUp { .. }
                | Phase::Calling { .. }
                | Phase::Answered { .. }
                | Phase::AtLimit(_),
            )
            | None => true,
        }
    }

    /// Whether the agent still waits for the answer to a question.
    #[must_use]
    pub fn awaits(&self, question: QuestionId) -> bool {
        self.volatile.questions.awaits(question)
    }
}
