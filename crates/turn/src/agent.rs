//! The agent of one session: durable state, volatile state, and the way in.

use crate::config::Config;
use crate::decide;
use crate::draft::Draft;
use crate::durable::{Durable, Phase};
use crate::effect::Step;
use crate::error::FoldError;
use crate::input::{Input, Scene, TimerKey};
use crate::reporting::Telling;
use crate::volatile::Volatile;
use agentd_protocol::{Event, SessionId};
use std::sync::Arc;

/// A back-off longer than this is rest: the actor may go and be woken at `summary.wake_at`.
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
        Self::from_snapshot(Durable::new(session), config)
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

    /// Goes on from a snapshot; [`Self::apply`] the events after it, then give it [`Input::Recover`].
    #[must_use]
    pub fn from_snapshot(durable: Durable, config: Arc<Config>) -> Self {
        Self {
            config,
            durable,
            volatile: Volatile::default(),
        }
    }

    /// Folds one more event of the log.
    ///
    /// # Errors
    /// The event does not follow from the log so far.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        self.durable.apply(event)
    }

    /// Decides. The step's events are already applied to this agent.
    pub fn step(&mut self, input: Input, scene: Scene<'_>) -> Step {
        let mut draft = Draft::new(self, scene);
        decide::decide(&mut draft, input);
        draft.finish()
    }

    /// What the log says so far.
    #[must_use]
    pub fn durable(&self) -> &Durable {
        &self.durable
    }

    /// Nothing runs, no background job either, and nothing is being judged: the actor may be passivated. Open approvals and long back-offs are at
    /// rest; `summary.wake_at` says when to come back.
    #[must_use]
    pub fn at_rest(&self) -> bool {
        let volatile = &self.volatile;
        let watches = volatile
            .timers
            .keys()
            .any(|key| matches!(key, TimerKey::Unattended(_)));
        if volatile.live.is_some() || volatile.shrinking.is_some() || watches || !volatile.counting.is_empty()
        {
            return false;
        }
        if !volatile.asked.is_empty() || !volatile.sides.is_empty() || volatile.weighing.is_some() {
            return false;
        }
        let told = volatile.telling == Telling::Sent && !volatile.draining;
        if told || volatile.tree.asking() {
            return false;
        }
        if !self.durable.jobs.is_empty() || self.durable.history.is_some() {
            return false;
        }
        let here =
            |call: &crate::OpenCall| call.is_running() && !crate::delegate::is_child(&self.durable, call);
        let runs = self.durable.open_calls().any(here);
        if !volatile.pending.is_empty() || runs {
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

    /// Whether the answer of these hooks is waited for.
    #[must_use]
    pub fn awaits_hooks(&self, number: u64) -> bool {
        self.volatile.asked.contains_key(&number)
    }

    /// Tool calls that run now.
    #[must_use]
    pub fn running_tools(&self) -> usize {
        self.volatile.running.len()
    }
}
