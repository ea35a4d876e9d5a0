//! The port for creating sub-agents from their parents.

use agentd_protocol::{Budget, Fault, Lineage, SessionCreated, SessionId};
use async_trait::async_trait;
use std::fmt::Debug;
use std::sync::OnceLock;

/// The inputs for a new sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSubagent {
    /// Its parent.
    pub parent: SessionId,
    /// The parent's current settings.
    pub settings: SessionCreated,
    /// The parent's current model.
    pub model: String,
    /// The budget of the whole tree.
    pub budget: Budget,
    /// Its place in the tree.
    pub lineage: Lineage,
    /// Its purpose, in a few words.
    pub purpose: String,
    /// The custom agent to run.
    pub agent: Option<String>,
}

/// Creates the first events of sub-agents, with no more rights than the parent has.
#[async_trait]
pub trait SubagentSource: Debug + Send + Sync {
    /// The first event of a sub-agent.
    async fn first_event(&self, new: NewSubagent) -> Result<SessionCreated, Fault>;
}

/// The slot for the source. It is filled once everything else exists, since the loops are created earlier.
#[derive(Debug, Default)]
pub struct SubagentPort(OnceLock<Box<dyn SubagentSource>>);

impl SubagentPort {
    /// Sets the source, so that sub-agents can be created. Later sources are ignored.
    pub fn open(&self, source: Box<dyn SubagentSource>) {
        // A second source would be equivalent to the first.
        drop(self.0.set(source));
    }

    /// The first event of a sub-agent.
    ///
    /// # Errors
    /// The sub-agent cannot be created; `unavailable`: not yet.
    pub async fn first_event(&self, new: NewSubagent) -> Result<SessionCreated, Fault> {
        match self.0.get() {
            Some(source) => source.first_event(new).await,
            None => Err(Fault::unavailable("starting", "the daemon is starting")),
        }
    }
}
