//! Tests of the whole agent, by subject. `world` simulates its surroundings.

mod approvals;
mod attempts;
mod cache;
mod calls;
mod checkpoints;
mod context;
mod delegating;
mod following;
mod guards;
mod history;
mod hooks;
mod inbox;
mod invariants;
mod jobs;
mod limits;
mod loop_requests;
mod outer;
mod overflow;
mod parking;
mod planning;
mod prefixes;
mod races;
mod recovery;
mod side;
mod states;
mod world;
