//! The agent as pure state machines: inputs in, events and effects out. No tokio, no actors, no clock.
//!
//! Invariants: I3 (every call ends in exactly one result), I4 (no effect before its durable intent, none repeated),
//! I7 (what cannot be judged is denied). Live state and recovery are one code path: `Durable` changes only in `apply`.
//! Flow: `Agent::step(Input, Scene)` -> `decide` -> events, each applied -> `Step { events, effects, reply }`.

mod config;
mod effect;
mod input;

pub use config::Config;
pub use effect::{Effect, Reply, Step};
pub use input::{
    CallPlan, Command, Input, Judged, ModelAnswer, ModelFacts, ModelFailure, NewInput, Scene, TimerKey,
};
