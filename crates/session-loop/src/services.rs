//! The services that all loops of a node share.

use crate::ask::Sharing;
use crate::models::Models;
use crate::workers::Workers;
use agentd_actor_kit::{Clock, FeedMsg, GateMsg, Handle, StoreMsg, SubagentPort, ToolMsg, Tracer};
use agentd_checkpoint::Keeper;
use agentd_hooks::{Hooks, Setup};
use agentd_kept_files::FileStore;
use agentd_protocol::SandboxLevel;
use agentd_settings::Live;
use agentd_store::Lease;
use agentd_tools::{Registry, Remote};
use agentd_turn::Config;
use std::sync::Arc;
use std::time::Duration;

/// The other actors, and the node's settings for all its sessions.
#[derive(Debug)]
pub struct Services {
    /// Time and entropy.
    pub clock: Clock,
    /// The session store.
    pub store: Handle<StoreMsg>,
    /// The fan-out to viewers.
    pub feed: Handle<FeedMsg>,
    /// The permission gate.
    pub gate: Handle<GateMsg>,
    /// The tool executor.
    pub tools: Handle<ToolMsg>,
    /// The models and the actors that grant permits for their calls.
    pub models: Models,
    /// Starts the workers.
    pub workers: Box<dyn Workers>,
    /// The built-in tools.
    pub registry: Registry,
    /// Runs the tools of servers, if there are any.
    pub remote: Option<Arc<dyn Remote>>,
    /// The operator's hooks.
    pub hooks: Hooks,
    /// Makes the first events of sub-agents.
    pub subagents: Arc<SubagentPort>,
    /// The tracer that gets the stages of calls.
    pub stages: Tracer,
    /// Settings of the core; a session keeps those that were in force when it was loaded.
    pub config: Live<Config>,
    /// How commands are confined.
    pub sandbox: SandboxLevel,
    /// How sessions share a provider, and which go first.
    pub sharing: Sharing,
    /// The time limits.
    pub timing: Timing,
    /// Keeps the recorded files of working directories.
    pub checkpoints: Keeper,
    /// Keeps the files of own workspaces in the store, and brings them back. Tests may do without.
    pub files: Option<FileStore>,
    /// Sets up the own workspaces of sessions.
    pub setup: Arc<dyn Setup>,
    /// Whether effects may start: in a fleet, until others may take over.
    pub lease: Lease,
}

/// How long a loop waits in each situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// An idle session goes cold after this.
    pub idle: Duration,
    /// A session that waits for a person or a distant time goes cold after this.
    pub parked: Duration,
    /// A session that will continue by itself sooner than this stays hot.
    pub soon: Duration,
    /// The store must answer an append within this.
    pub append: Duration,
    /// An append that was refused for lack of space is tried again after this.
    pub retry_full: Duration,
    /// The store must answer a load's requests within this.
    pub load: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            parked: Duration::from_secs(2),
            soon: Duration::from_secs(5),
            append: Duration::from_secs(30),
            retry_full: Duration::from_secs(1),
            load: Duration::from_secs(10),
        }
    }
}
