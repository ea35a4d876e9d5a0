//! The session store's actor, which admits and answers all requests to the log, and the feed, which sends commits to
//! viewers.
//!
//! Invariants: I1, an append is answered with `Committed` only after its commit; I2, a viewer gets every event of its
//! session once and in order, or is told that it lags and continues from the log; I6, a slow viewer does not slow down
//! others, and reads never wait behind appends.
//!
//! Flow: `StoreMsg::Append` -> a task -> commit -> `FeedMsg::Committed` -> bounded viewer queues; then the answer.

mod actor;
mod admission;
mod feed;
mod fleet;
mod follower;
mod partial;
mod state;

#[cfg(test)]
mod tests;

pub use actor::{OnFatal, SessionStore, StoreArgs};
pub use admission::StoreLimits;
pub use feed::{Feed, FeedArgs};
pub use follower::VIEWER_FRAMES;
pub use state::{FeedLimits, FeedState};
