//! Who knows how a sub-agent is made from its parent.

use agentd_protocol::{Budget, Fault, Lineage, SessionCreated, SessionId};
use async_trait::async_trait;
use std::fmt::Debug;
use std::sync::OnceLock;

/// What a sub-agent is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSubagent {
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
    pub lineage: Lineage,
    /// What it is for, in a few words.
    pub purpose: String,
    /// The custom agent that does it.
    pub agent: Option<String>,
}

/// Makes the first events of sub-agents: never more than the parent may.
#[async_trait]
pub trait SubagentSource: Debug + Send + Sync {
    /// The first event of a sub-agent.
    async fn first_event(&self, new: NewSubagent) -> Result<SessionCreated, Fault>;
}

/// Where the source is put when everything else is there; the loops are made before it.
#[derive(Debug, Default)]
pub struct SubagentPort(OnceLock<Box<dyn SubagentSource>>);

impl SubagentPort {
    /// From now on sub-agents are made. Only the first source stays.
    pub fn open(&self, source: Box<dyn SubagentSource>) {
        // A second one knows nothing that the first does not.
        drop(self.0.set(source));
    }

    /// The first event of a sub-agent.
    ///
    /// # Errors
    /// It cannot be made; `unavailable`: not now.
    pub async fn first_event(&self, new: NewSubagent) -> Result<SessionCreated, Fault> {
        match self.0.get() {
            Some(source) => source.first_event(new).await,
            None => Err(Fault::unavailable("starting", "the daemon is starting")),
        }
    }
}
