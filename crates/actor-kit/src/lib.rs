//! The message enums (ports) of the actors that know models and tools; re-exports all of `agentd-actor-core`.
//!
//! A port defines the messages of an actor. No behavior is here, so the actors need not import each other.
//!
//! Invariants: I6 (every caller eventually gets an answer or learns that there is none), I7 (a lost answer allows nothing).

mod gate_port;
mod model_port;
mod session_port;
mod subagent_port;
mod supervisor_port;
mod tool_port;

pub use agentd_actor_core::{
    Alarm, Attached, CallError, CallStage, Clock, Done, Down, FeedEvent, FeedFrame, FeedMsg, Handle, Load,
    Pointer, Published, Read, RequestSent, RestartWindow, StageDone, StoreMsg, Traced, Tracer, Viewer,
    ViewerId, WorkerTable, spawn_worker,
};
pub use gate_port::{GateMsg, JudgeRequest};
pub use model_port::{
    Admitted, Ask, CallOutcome, CallPermit, Grant, Hold, Lane, ModelMsg, Outlook, ProviderStatus,
    QueuePosition, Refusal,
};
pub use session_port::{CallEvent, Credit, Earlier, RunEvent, SessionMsg, Work};
pub use subagent_port::{NewSubagent, SubagentPort, SubagentSource};
pub use supervisor_port::{LiveStatus, LoopId, NotLoaded, Routed, SupervisorMsg, SupervisorStats};
pub use tool_port::{CallDetail, Contents, Held, Lent, ToolMsg, ToolPermit};
