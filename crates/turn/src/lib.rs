//! The agent as pure state machines: inputs in, events and effects out. No tokio, no actors, no clock.
//!
//! Invariants: I2 (a log with a gap is refused), I3 (every call ends in exactly one result), I4 (no effect before its
//! durable intent, none repeated), I7 (what cannot be judged is denied). Live state and recovery are one code path:
//! [`Durable`] changes only where an event is applied, and a decision applies each fact the moment it is written down.
//! Flow: [`Agent::step`] -> `decide` (the turn loop) -> events, each applied -> [`Step`] with events, effects, reply.

mod agent;
mod apply;
mod apply_call;
mod apply_turn;
mod approvals;
mod attempts;
mod calls;
mod command;
mod config;
mod decide;
mod draft;
mod durable;
mod effect;
mod ending;
mod error;
mod guards;
mod inbox;
mod input;
mod intent;
mod judging;
mod limits;
mod open_call;
mod recover;
mod spending;
mod status;
mod steps;
mod stutter;
mod timers;
mod volatile;
mod words;

#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use config::Config;
pub use durable::{Attempt, Durable, LastTurn, Mark, Phase, Totals, Turn, Waiting};
pub use effect::{Effect, Reply, Step};
pub use error::FoldError;
pub use guards::Guards;
pub use input::{
    CallPlan, Command, Input, Judged, ModelAnswer, ModelFacts, ModelFailure, NewInput, Scene, TimerKey,
};
pub use intent::IntentMatcher;
pub use open_call::{OpenCall, Stage, Started};
pub use stutter::stutters;
