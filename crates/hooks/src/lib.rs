//! Hooks: commands of the operator that are told of tool calls, and what their answers mean.
//!
//! Invariants: I5 (each runs under a warden of its own, which ends with it), I7 (before a call a hook that fails, runs out
//! of time or says what is not understood denies, unless the operator wrote otherwise; no answer of a hook widens what
//! rules decided), I8 (a known credential in an answer is not written down).
//!
//! Flow: `Hooks::before` / `Hooks::after` -> `Launch::launch` -> `Ended` -> `answer::read` -> `Ran`.

mod answer;
mod hooks;
mod launch;

pub use hooks::{HookCall, Hooks, Narrowing, Ran};
pub use launch::{Ended, Launch, WardenLaunch};

#[cfg(test)]
mod tests;
