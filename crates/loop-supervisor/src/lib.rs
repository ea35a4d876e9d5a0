//! Routes commands to sessions, and spawns, passivates, wakes and restarts their loops.
//!
//! Invariants held here: I1, a command goes to exactly one live incarnation, and none is lost when a session goes cold;
//! I6, a crashing loop affects only its own session, and three crashes in five minutes fault that session and no other;
//! I9, a session is claimed, and so fenced, before its log is read. A cold session has no entry.
//!
//! Flow: a message -> `Supervisor`, which is pure -> actions, which the shell carries out. `SupervisorMsg::Route` -> hot:
//! cast; cold: claim and fold in a task -> `Loaded` -> waiting commands.

mod actor;
mod args;
mod jobs;
mod machine;
mod shell;

#[cfg(test)]
mod tests;

pub use actor::LoopSupervisor;
pub use args::{Bounds, SupervisorArgs};
pub use machine::{Action, Supervisor, SupervisorMutant, wake_time};
pub use shell::Shell;
