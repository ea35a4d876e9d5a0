//! Simulates the real agent from a seed: the machines of the session loop and its supervisor, the store in memory, the
//! admission of model calls, the gate's rules, the feed. Time is virtual; models, tools, people, viewers and crashes are
//! driven by random numbers.
//!
//! No thread, no clock, no runtime: a seed and its options give the same trace, byte for byte. Each run switches some
//! faults and features off and picks rates for the rest ([`Options`]); then fault injection stops, and all must come to
//! rest. The predicates of `agentd_turn` are checked at every step (I1 to I7, I9), and on the logs once more at the
//! end. A [`Flaw`] breaks something on purpose: the tests show that each is found.
//!
//! With more than one node (`nodes=3`), the nodes share the store, which keeps owners apart as PostgreSQL does (`nodes.rs`).
//! Each runs the shipped decisions about its membership. Nodes also stop for a while, are cut off from the store, drain, and
//! have clocks that jump; the store restarts. Every run stops a busy node until the others take over its sessions.
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
mod fleet;
mod forks;
mod here;
mod hooked;
mod hot;
mod imports;
mod loading;
mod loops;
mod membership;
mod messages;
mod models;
mod node;
mod nodes;
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
