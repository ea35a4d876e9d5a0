//! Tests of the whole tree with real actors, a store in memory and a scripted model: the effects of each failure.

mod meltdown;
mod nodes;
mod script;
mod services;
mod singletons;
mod storing;
mod world;
