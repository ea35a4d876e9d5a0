//! Runs the real agent under one seed: `turn` with its outbox, the store in memory, the admission of model calls, the
//! gate's rules, the feed; around them virtual time, and models, tools, people, viewers and crashes that the dice decide.
//!
//! No thread, no clock, no runtime: a seed and its options give the same trace, byte for byte. Each run switches some of
//! what can happen off and picks rates for the rest ([`Options`]); then nobody does harm any more, and all must come to rest.
//! What must hold is asked of the predicates of `agentd_turn` at every step (I1 to I7, I9), and of the log once more at the end.
//! A [`Flaw`] breaks something on purpose: the tests show that each is found.
//!
//! Flow: [`simulate`] -> the schedule -> a happening -> a loop's message -> `Agent::step` -> events and effects -> the schedule.

mod answers;
mod book;
mod calm;
mod dice;
mod disk;
mod effects;
mod errands;
mod family;
mod fixed;
mod forks;
mod hooked;
mod hot;
mod imports;
mod kids;
mod loops;
mod messages;
mod models;
mod node;
mod options;
mod people;
mod report;
mod rest;
mod rules;
mod shrink;
mod sides;
mod speech;
mod trace;
mod trees;
mod viewers;
mod world;

#[cfg(test)]
mod tests;

pub use options::{Flaw, Options};
pub use report::{Report, simulate};
