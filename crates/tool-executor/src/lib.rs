//! Admission of tool calls (one actor), and one worker per running tool call.
//!
//! Sessions share a node's permits and are served in turn. Commands cannot take all permits, so file operations
//! continue meanwhile. Each session has one slot for its process warden, which starts at the first command.
//!
//! Invariants held here: I3 (a call's result is sent before its worker ends, exactly once; a panic of a tool fails the
//! worker, which its session turns into a result), I5 (killing a worker kills its command; the end of a session ends
//! its warden), I6 (a permit comes back however its call ends), I8 (known credentials are removed from every result,
//! from live output, and from what is shown for an approval).
//!
//! Flow: [`ToolCall`] -> `ToolMsg::Acquire` -> permit -> `tools::run` -> `RunEvent::Ended` -> `ToolMsg::Release`.

mod actor;
mod addresses;
mod conceal;
mod focus;
mod guarding;
mod permits;
mod pre_images;
mod put_back;
mod run;
mod wardens;
mod worker;

pub use actor::{ExecutorArgs, ToolExecutor};
pub use put_back::{PutBack, put_back};
pub use worker::{Mandate, ToolCall, ToolStart};

#[cfg(test)]
mod tests;
