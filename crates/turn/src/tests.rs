//! Tests of the whole agent, by subject. `world` plays everything around it.

mod approvals;
mod attempts;
mod calls;
mod guards;
mod inbox;
mod limits;
mod prefixes;
mod races;
mod recovery;
mod states;
mod world;
