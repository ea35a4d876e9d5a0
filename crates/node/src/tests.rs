//! The whole tree with real actors, a store in memory and a scripted model; what a failure costs is what the tree says.

mod meltdown;
mod nodes;
mod script;
mod singletons;
mod storing;
mod world;
