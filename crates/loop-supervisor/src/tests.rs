//! Real supervisor, loops, core and in-memory store; the workers, gate, tools and feed are controlled by the tests.

mod alone;
mod beside;
mod cancelling;
mod compacting;
mod crashing;
mod draining;
mod failing;
mod hooking;
mod jobs;
mod lifecycle_hooks;
mod passivating;
mod peers;
mod puppets;
mod recovering;
mod routing;
mod stepping;
mod storing;
mod world;
