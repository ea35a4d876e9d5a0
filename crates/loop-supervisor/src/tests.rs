//! Real supervisor, real loops, real core, a real store in memory; kids, gate, tools and feed are puppets of the test.

mod beside;
mod cancelling;
mod compacting;
mod crashing;
mod draining;
mod failing;
mod hooking;
mod jobs;
mod occasions;
mod passivating;
mod peers;
mod puppets;
mod recovering;
mod routing;
mod stepping;
mod storing;
mod world;
