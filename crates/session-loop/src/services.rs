//! What all loops of a node share.

use crate::ask::Sharing;
use crate::models::Models;
use crate::workers::Workers;
use agentd_actor_kit::{Clock, FeedMsg, GateMsg, Handle, StoreMsg, SubagentPort, ToolMsg, Tracer};
use agentd_hooks::Hooks;
use agentd_protocol::SandboxLevel;
use agentd_settings::Live;
use agentd_tools::{Registry, Remote};
use agentd_turn::Config;
use std::sync::Arc;
use std::time::Duration;

/// The other actors, and what the node decides for all its sessions.
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
    /// The models and who admits their calls.
    pub models: Models,
    /// Who starts the kids.
    pub workers: Box<dyn Workers>,
    /// The tools that are built in.
    pub registry: Registry,
    /// Who runs the tools of servers, if there are any.
    pub remote: Option<Arc<dyn Remote>>,
    /// The operator's hooks.
    pub hooks: Hooks,
    /// Who makes the first events of sub-agents.
    pub subagents: Arc<SubagentPort>,
    /// Where the stages of calls are told.
    pub stages: Tracer,
    /// Settings of the core; a session has those of the moment when it was loaded.
    pub config: Live<Config>,
    /// How commands are confined.
    pub sandbox: SandboxLevel,
    /// Who shares a provider, and who goes first.
    pub sharing: Sharing,
    /// How long things may take.
    pub timing: Timing,
}

/// How long a loop waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// An idle session leaves memory after this.
    pub idle: Duration,
    /// A session that waits for a person or a far-off time leaves memory after this.
    pub parked: Duration,
    /// A session that goes on by itself sooner than this stays.
    pub soon: Duration,
    /// The store must answer an append within this.
    pub append: Duration,
    /// An append that was refused for lack of space is tried again after this.
    pub retry_full: Duration,
    /// The store must answer what a load asks within this.
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
