//! Who knows how a sub-agent is made from its parent.

use agentd_protocol::{Budget, Errand, Fault, SessionCreated, SessionId};
use async_trait::async_trait;
use std::fmt::Debug;
use std::sync::OnceLock;

/// What a sub-agent is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Birth {
    /// Its parent.
    pub parent: SessionId,
    /// The parent's settings as they are now.
    pub settings: SessionCreated,
    /// The model that the parent uses now.
    pub model: String,
    /// Rules that people granted for the parent.
    pub grants: Vec<String>,
    /// What all of the tree may spend.
    pub budget: Budget,
    /// For whom it works.
    pub errand: Errand,
    /// What it is for, in a few words.
    pub purpose: String,
    /// The custom agent that does it.
    pub agent: Option<String>,
}

/// Makes the first events of sub-agents: never more than the parent may.
#[async_trait]
pub trait Midwife: Debug + Send + Sync {
    /// The first event of a sub-agent.
    async fn first_event(&self, birth: Birth) -> Result<SessionCreated, Fault>;
}

/// The place of the midwife, who comes when everything else is there.
#[derive(Debug, Default)]
pub struct Nursery(OnceLock<Box<dyn Midwife>>);

impl Nursery {
    /// The midwife is there. Only the first one stays.
    pub fn staff(&self, midwife: Box<dyn Midwife>) {
        // A second one knows nothing that the first does not.
        drop(self.0.set(midwife));
    }

    /// The first event of a sub-agent.
    ///
    /// # Errors
    /// It cannot be made; `unavailable`: not now.
    pub async fn first_event(&self, birth: Birth) -> Result<SessionCreated, Fault> {
        match self.0.get() {
            Some(midwife) => midwife.first_event(birth).await,
            None => Err(Fault::unavailable("starting", "the daemon is starting")),
        }
    }
}
