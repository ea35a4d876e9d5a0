//! What every actor shares, and the ports of the store and the feed, which know nothing of models and tools.
//!
//! Here are the pieces that make supervision safe: an answer that always arrives ([`Done`]), a handle that survives its
//! actor's restart ([`Handle`]), kids with `(work, attempt)` ([`Kids`]), a restart window, a clock. The ports of the other actors
//! are in `agentd-actor-kit`, which exports all of this, too.
//!
//! Invariant I6: every port is answered or says that it is gone; nobody waits for ever.

mod alarm;
mod clock;
mod done;
mod feed_port;
mod handle;
mod kid;
mod kids;
mod restart;
mod stages;
mod store_port;

pub use alarm::Alarm;
pub use clock::Clock;
pub use done::Done;
pub use feed_port::{Attached, FeedEvent, FeedFrame, FeedMsg, Published, Viewer, ViewerId};
pub use handle::{CallError, Handle, Pointer};
pub use kid::spawn_kid;
pub use kids::{Down, Kids};
pub use restart::RestartWindow;
pub use stages::{CallStage, RequestSent, StageDone, Traced, Tracer};
pub use store_port::{Read, StoreMsg};
