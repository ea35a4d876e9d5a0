//! Admission to model providers (one actor each), and one worker per attempt of a model call.
//!
//! All sessions of a node share a provider: its permits, and the rates and the health of each credential for each model.
//! Interactive calls go first, groups share by weight, and sessions within a group take turns. A failing credential gets
//! a cooldown, and so does a failing provider; then one probe tests whether it works again. Calls do not queue long for a
//! closed provider: they are refused, so that their sessions can park.
//!
//! Invariants held here: a permit is returned however its call ends, by answer, kill or panic (I6); a killed call
//! drops its connection; deltas are sent on credit, so a slow session slows only its own stream (I6); the
//! result of a call is sent before its worker ends, exactly once (I3).
//!
//! Flow: [`ModelCall`] -> `ModelMsg::Acquire` -> permit -> `provider::call` -> deltas -> `Release` -> `CallEvent::Answered`.

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
