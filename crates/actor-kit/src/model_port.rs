//! What a model client understands: admission to one provider.

use crate::done::Done;
use agentd_protocol::{FailureClass, SessionId, Timestamp};
use ractor::ActorRef;

/// How a model call used its permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallOutcome {
    /// It was dropped before it knew.
    #[default]
    Dropped,
    /// It answered.
    Answered,
    /// It failed; the server may have said how long to wait.
    Failed {
        /// The class.
        class: FailureClass,
        /// The server's wish.
        retry_after_ms: Option<u64>,
    },
}

/// The right to have one model call in flight. Given back when dropped, also by a kill or a panic.
#[derive(Debug)]
pub struct CallPermit {
    client: ActorRef<ModelMsg>,
    session: SessionId,
    /// Set before dropping, so that the client learns.
    pub outcome: CallOutcome,
}

impl CallPermit {
    /// A permit of this client; only the client makes them.
    #[must_use]
    pub const fn new(client: ActorRef<ModelMsg>, session: SessionId) -> Self {
        Self {
            client,
            session,
            outcome: CallOutcome::Dropped,
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let _ = self.client.cast(ModelMsg::Release {
            session: self.session,
            outcome: self.outcome,
        });
    }
}

/// The state of a provider's admission.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderStatus {
    /// Calls in flight.
    pub running: u32,
    /// Calls that wait for a permit.
    pub waiting: u32,
    /// Permits in all.
    pub permits: u32,
    /// The server said to wait until then.
    pub paused_until: Option<Timestamp>,
}

/// Messages of a model client.
#[derive(Debug)]
pub enum ModelMsg {
    /// Wait for a permit; the queue is fair by session.
    Acquire {
        /// Who.
        session: SessionId,
        /// The permit. An asker that is gone is skipped: the permit comes back by its drop.
        done: Done<CallPermit>,
    },
    /// A permit came back.
    Release {
        /// Whose.
        session: SessionId,
        /// How it was used.
        outcome: CallOutcome,
    },
    /// The pause is over (private timer).
    Unpause {
        /// The generation of the timer.
        generation: u64,
    },
    /// How things stand.
    Status {
        /// The answer.
        done: Done<ProviderStatus>,
    },
}
