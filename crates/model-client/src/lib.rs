//! Admission to a model provider (one actor each), and one kid per attempt of a model call.
//!
//! All sessions of a node share a provider: its permits, and the rates and the health of each credential for each model.
//! Interactive calls go first, groups share by weight, sessions of a group take turns. A credential that fails is left alone
//! for a while, a provider that fails, too; one call finds out when it works again. Nobody waits long in line for a closed
//! provider: the call is refused, and its session can park.
//!
//! Invariants held here: a permit comes back however its call ends, by answer, kill or panic (I6); a call that is killed
//! drops its connection; pieces of an answer are sent on credit, so a slow session slows its own stream only (I6); the
//! result of a call is sent before its kid ends, exactly once (I3).
//!
//! Flow: [`ModelCall`] -> `ModelMsg::Acquire` -> permit -> `provider::call` -> merged deltas -> `Release` -> `CallEvent::Answered`.

mod actor;
mod attempt;
mod bucket;
mod call;
mod circuit;
mod configure;
mod count;
mod counts;
mod credential;
mod health;
mod line;
mod merge;
mod pace;
mod queue;
mod setup;
mod state;
mod view;

pub use actor::{ClientArgs, ModelClient};
pub use call::{CallStart, ModelCall};
pub use count::{CountStart, TokenCount};
pub use setup::{Notice, Setup, Step};
pub use state::Admission;
