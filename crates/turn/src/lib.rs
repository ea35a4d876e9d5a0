//! The agent as pure state machines: inputs in, events and effects out. No tokio, no actors, no clock.
//!
//! Invariants: I2 (a log with a gap is refused), I3 (every call ends in exactly one result), I4 (no effect before its
//! durable intent, none repeated), I7 (what cannot be judged is denied). Live state and recovery are one code path:
//! [`Durable`] changes only where an event is applied, and a decision applies each fact as soon as it is recorded.
//! After a failed attempt, the first remedy of [`TABLE`] that still has budget is taken.
//! Flow: [`Agent::step`] -> `decide` (the turn loop) -> events, each applied -> [`Step`] with events, effects, reply.

mod agent;
mod attempts;
mod calls;
mod checkpoints;
mod command;
mod config;
mod context;
mod decide;
mod draft;
mod durable;
mod effect;
mod history;
mod inbox;
mod input;
mod invariants;
mod lifecycle;
mod planning;
mod questions;
mod recover;
mod setup;
mod side;
mod steps;
mod timers;
mod tree;
mod volatile;
mod words;

#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use attempts::left_out::{Items, LeftOut};
pub use attempts::outer::{Away, Outer, Taught, Tries, Warm};
pub use attempts::remedy::{
    Again, Elsewhere, Parking, Row, TABLE, markdown as remedies_markdown, row as remedies_of,
};
pub use attempts::stutter::stutters;
pub use calls::jobs::JobEnd;
pub use calls::loop_requests::LoopRequest;
pub use calls::open_call::{OpenCall, Stage, Started};
pub use checkpoints::{CheckpointRule, RecordedFiles};
pub use command::{SETTINGS_CHANGED, settings_changed};
pub use config::{Config, OnExpiry};
pub use context::{ContextRules, Sizes};
pub use durable::fold_error::FoldError;
pub use durable::shown_settings::ShownSettings;
pub use durable::{Attempt, Durable, LastTurn, Mark, OpenHistory, Phase, Totals, Turn, Waiting};
pub use effect::{Effect, Reply, Shrink, SideCall, Step, Summariser};
pub use history::{Rework, Reworked};
pub use input::{
    CallPlan, Command, Input, Judged, ModelAnswer, ModelFacts, ModelFailure, NewInput, Scene, Shrunk,
    SideEnded, TimerKey, Transfer,
};
pub use invariants::{Held, Order, Violation, Witness, sound_request, stable_prefix};
pub use lifecycle::event::{LifecycleEvent, Notice};
pub use planning::intent_guard::IntentMatcher;
pub use planning::{Plan, PlanRequest, TurnPlan};
pub use questions::{Answer, Question, QuestionId};
pub use side::SideRules;
pub use steps::guards::Guards;
pub use steps::surroundings::Surroundings;
pub use tree::delegate::{Child, Delegation, Ended};
pub use tree::shared_budget::{Above, TreeSpent};
