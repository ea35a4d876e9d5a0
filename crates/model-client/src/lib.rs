//! Admission to a model provider (one actor each), and one kid per attempt of a model call.
//!
//! All sessions of a node share a provider's permits; waiters are served in turn by session, so one session with many
//! calls does not starve another. A server that says "wait" pauses everybody who wants the same provider.
//!
//! Invariants held here: a permit comes back however its call ends, by answer, kill or panic (I6); a call that is killed
//! drops its connection; pieces of an answer are sent on credit, so a slow session slows its own stream only (I6); the
//! result of a call is sent before its kid ends, exactly once (I3).
//!
//! Flow: [`ModelCall`] -> `ModelMsg::Acquire` -> permit -> `provider::call` -> merged deltas -> `CallEvent::Answered` -> `Release`.

mod actor;
mod attempt;
mod call;
mod merge;
mod state;

pub use actor::{ClientArgs, ModelClient};
pub use call::{CallStart, ModelCall};
