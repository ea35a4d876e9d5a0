//! The parts that all actors share, and the ports of the store and the feed, which know nothing of models and tools.
//!
//! The parts that make supervision safe are here: an answer that always arrives ([`Done`]), a handle that survives its
//! actor's restart ([`Handle`]), workers with `(work, attempt)` ([`WorkerTable`]), a restart window, a clock. The ports of the
//! actors are in `agentd-actor-kit`, which also re-exports all of this.
//!
//! Invariant I6: every caller gets an answer or learns that the actor is gone; none waits forever.

mod alarm;
mod clock;
mod done;
mod feed_port;
mod handle;
mod load;
mod restart;
mod stages;
mod store_port;
mod worker;
mod workers;

pub use alarm::Alarm;
pub use clock::Clock;
pub use done::Done;
pub use feed_port::{Attached, FeedEvent, FeedFrame, FeedMsg, Published, Viewer, ViewerId};
pub use handle::{CallError, Handle, Pointer};
pub use load::Load;
pub use restart::RestartWindow;
pub use stages::{CallStage, RequestSent, StageDone, Traced, Tracer};
pub use store_port::{Read, StoreMsg};
pub use worker::spawn_worker;
pub use workers::{Down, WorkerTable};
