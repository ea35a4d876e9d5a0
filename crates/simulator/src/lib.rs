//! Simulates the real agent from a seed: the machines of the session loop and its supervisor, the store in memory, the
//! admission of model calls, the gate's rules, the feed. Time is virtual; models, tools, people, viewers and crashes are
//! driven by random numbers.
//!
//! No thread, no clock, no runtime: a seed and its options give the same trace, byte for byte. Each run switches some
//! faults and features off and picks rates for the rest ([`Options`]); then fault injection stops, and all must come to
//! rest. The predicates of `agentd_turn` are checked at every step (I1 to I7, I9), and on the logs once more at the
//! end. A [`Flaw`] breaks something on purpose: the tests show that each is found.
//!
//! Flow: [`simulate`] -> schedule -> happening -> message to the supervisor or to a loop -> actions or effects -> schedule.

mod answers;
mod book;
mod calm;
mod dice;
mod disk;
mod effects;
mod family;
mod fixed;
mod forks;
mod hooked;
mod hot;
mod imports;
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
mod tree_messages;
mod trees;
mod viewers;
mod workers;
mod world;

#[cfg(test)]
mod tests;

pub use options::{Flaw, Options};
pub use report::{Report, simulate};
