//! The agent as pure state machines: inputs in, events and effects out. No tokio, no actors, no clock.
//!
//! Invariants: I2 (a log with a gap is refused), I3 (every call ends in exactly one result), I4 (no effect before its
//! durable intent, none repeated), I7 (what cannot be judged is denied). Live state and recovery are one code path:
//! [`Durable`] changes only where an event is applied, and a decision applies each fact as soon as it is recorded.
//! After a failed attempt, the first remedy of [`TABLE`] that still has budget is taken.
//! Flow: [`Agent::step`] -> `decide` (the turn loop) -> events, each applied -> [`Step`] with events, effects, reply.

mod agent;
mod apply;
mod apply_call;
mod apply_model;
mod apply_turn;
mod approvals;
mod attempts;
mod cache_watch;
mod calls;
mod choose;
mod classify;
mod command;
mod config;
mod context;
mod decide;
mod delegate;
mod draft;
mod durable;
mod effect;
mod ending;
mod error;
mod following;
mod guards;
mod history;
mod hooks;
mod inbox;
mod input;
mod intent;
mod invariants;
mod jobs;
mod judging;
mod launch;
mod lifetime;
mod limits;
mod model_outcome;
mod occasions;
mod open_call;
mod outer;
mod overflow;
mod phase;
mod plan_mode;
mod planning;
mod recover;
mod remedy;
mod reporting;
mod shown;
mod side;
mod side_answer;
mod spending;
mod status;
mod steps;
mod stutter;
mod talk;
mod timers;
mod told;
mod topic;
mod tree;
mod volatile;
mod weighing;
mod words;

#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use command::settings_changed;
pub use config::{Config, OnExpiry};
pub use context::{ContextRules, Sizes};
pub use delegate::{Child, Delegation, Ended};
pub use durable::{Attempt, Durable, LastTurn, Mark, OpenHistory, Phase, Totals, Turn, Waiting};
pub use effect::{Effect, Reply, Shrink, SideCall, Step, Summariser};
pub use error::FoldError;
pub use guards::Guards;
pub use history::{Rework, Reworked};
pub use input::{
    CallPlan, Command, Input, Judged, ModelAnswer, ModelFacts, ModelFailure, NewInput, Scene, Shrunk,
    SideEnded, TimerKey,
};
pub use intent::IntentMatcher;
pub use invariants::{Held, Order, Violation, Witness, sound_request, stable_prefix};
pub use jobs::JobEnd;
pub use open_call::{OpenCall, Stage, Started};
pub use outer::{Away, Outer, Taught, Tries, Warm};
pub use planning::{Plan, PlanTalk, TurnPlan};
pub use remedy::{Again, Elsewhere, Parking, Row, TABLE, markdown as remedies_markdown, row as remedies_of};
pub use shown::ShownSettings;
pub use side::SideRules;
pub use stutter::stutters;
pub use talk::Talk;
pub use told::Told;
pub use topic::{Notice, Topic};
pub use tree::{Above, TreeSpent};
