//! Admission of tool calls (one actor), and one kid per running tool call.
//!
//! Sessions share a node's permits and are served in turn; commands cannot take all of them, so reading and writing files
//! goes on beside them. Each session has one place for its resident process warden, started at its first command.
//!
//! Invariants held here: I3 (a call's result is sent before its kid ends, exactly once; a panic of a tool is a failed kid,
//! which its session turns into a result), I5 (a killed kid kills its command; the end of a session ends its warden), I6
//! (a permit comes back however its call ends), I8 (a known credential is cut out of every result, of live output, and of
//! what a person is asked about).
//!
//! Flow: [`ToolCall`] -> `ToolMsg::Acquire` -> permit -> `tools::run` -> `RunEvent::Ended` -> `ToolMsg::Release`.

mod actor;
mod addresses;
mod conceal;
mod focus;
mod guarding;
mod kid;
mod permits;
mod pre_images;
mod put_back;
mod run;
mod wardens;

pub use actor::{ExecutorArgs, ToolExecutor};
pub use kid::{Mandate, ToolCall, ToolStart};
pub use put_back::{PutBack, put_back};

#[cfg(test)]
mod tests;
