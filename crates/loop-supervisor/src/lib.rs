//! Routes commands to sessions, and spawns, passivates, wakes and restarts their loops.
//!
//! Invariants held here: I1, a command goes to exactly one live incarnation, and none is lost when a session goes cold;
//! I6, a crashing loop affects only its own session, and three crashes in five minutes fault that session and no other;
//! I9, a session is claimed, and so fenced, before its log is read. A cold session has no entry.
//!
//! Flow: `SupervisorMsg::Route` -> hot: cast; cold: claim and fold in a task -> `Loaded` -> waiting commands.

mod actor;
mod args;
mod crashes;
mod drain;
mod loading;
mod passivation;
mod routing;
mod slot;
mod state;
mod wakes;
mod waking;

#[cfg(test)]
mod tests;

pub use actor::LoopSupervisor;
pub use args::{Bounds, SupervisorArgs};
pub use state::State;
