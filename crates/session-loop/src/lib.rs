//! The loop of one hot session: the thin shell around the pure core of `agentd-turn`.
//!
//! Invariants held here: I1, a command is answered after its events are durable; I3 and I4, a tool runs after its intent
//! is durable, and a worker that dies without a result still yields one; I6, no handler waits for a model, a tool, a person
//! or the store; I7, a gate that does not answer denies; I8, a known credential in a command is not written down; I9, a
//! fenced append stops the loop.
//!
//! Flow: `SessionMsg` -> `Input` -> `Agent::step` -> events into the outbox, effects carried out -> `StoreMsg::Append` ->
//! `SessionMsg::Stored` -> answers and tool runs that waited.

mod actor;
mod answer;
mod ask;
mod checkpoint;
mod commit;
mod compacting;
mod conceal;
mod effects;
mod error;
mod family;
mod fault_report;
mod files_here;
mod hooking;
mod jobs;
mod judging;
mod lifecycle_hooks;
mod live;
mod load;
mod loop_request;
mod machine;
mod models;
mod post_hooks;
mod request;
mod rest;
mod retry_policy;
mod rework;
mod servers;
mod services;
mod setup;
mod shell;
mod side;
mod spawn;
mod stages;
mod summary_call;
mod token_count;
mod toolset;
mod tree_spending;
mod watched;
mod work;
mod worker_events;
mod workers;

pub use actor::{LoopArgs, SessionLoop};
pub use answer::taken;
pub use ask::Sharing;
pub use error::LoopError;
pub use fault_report::tell_of_fault;
pub use files_here::LoadPurpose;
pub use judging::{Details, verdict};
pub use load::{Folded, fresh, load};
pub use loop_request::loop_request;
pub use machine::{Committed, Decided, LOST, Lost, Machine, Mutant, Outside};
pub use models::Models;
pub use retry_policy::{
    COMMAND, Next, after_creation, after_report, after_stop, missed, not_started, pauses, spent_of,
    unanswered,
};
pub use services::{Services, Timing};
pub use shell::Shell;
pub use spawn::WorkerSpawner;
pub use work::Task;
pub use workers::{CountJob, ModelJob, ReworkJob, ToolJob, Workers};
