//! Hooks: commands of the operator that are told of tool calls, inputs and turns, and what their answers mean.
//!
//! Invariants: I5 (each runs under a warden of its own, which ends with it), I7 (what a hook may prevent is prevented when
//! it fails, runs out of time or says what is not understood, unless the operator wrote otherwise; no answer widens what
//! rules decided, but for a question that the operator lets a hook answer), I8 (a known credential in an answer is not
//! written down).
//!
//! Flow: `Hooks::before` / `instead` / `after` / `tell` -> `Launch::launch` -> `Ended` -> `answer::read` -> `HookFinished`.

mod answer;
mod call;
mod hooks;
mod launch;
mod occasion;

pub use call::{HookCall, Narrowing, Ran};
pub use hooks::Hooks;
pub use launch::{Ended, Launch, WardenLaunch};
pub use occasion::Occasion;

#[cfg(test)]
mod tests;
