//! Hooks: commands of the operator that hear of tool calls, inputs and turns, and the interpretation of their answers.
//!
//! Invariants: I5 (each hook runs under its own warden, which ends with it), I7 (what a hook may prevent is prevented if
//! it fails, times out or gives an invalid answer, unless the operator configured otherwise; no answer widens what the
//! rules decided, except for an approval that the operator lets a hook give), I8 (known credentials in an answer are not
//! logged).
//!
//! Flow: `Hooks::before` / `instead` / `after` / `tell` -> `Launch::launch` -> `Ended` -> `answer::read` -> `HookFinished`.

mod answer;
mod call;
mod hooks;
mod launch;
mod lifecycle;
mod setup;

pub use call::{HookCall, Narrowing, Ran};
pub use hooks::Hooks;
pub use launch::{Ended, Launch, WardenLaunch};
pub use lifecycle::LifecycleCall;
pub use setup::{NoSetup, Setup, SetupArgs, SetupCommands};

#[cfg(test)]
mod tests;
