//! The tools of an agent: their specs, the checks of their arguments, and what they do.
//!
//! Everything that goes wrong in a tool is a result for the model that says what to do instead, never an error of the
//! daemon. Files are opened beneath the session's working directory only; commands run under the session's warden.
//!
//! Invariants: I3 (a call comes to exactly one result: [`Registry::prepare`] refuses, or [`run`] finishes), I5 (a dropped
//! [`run`] kills its command), I7 (the path or command that the gate judges is exactly what is opened or run), I8
//! (commands see the warden's environment by allow-list).
//!
//! Flow: name and arguments -> [`Registry::prepare`] -> [`Prepared`] (judged by the gate) -> [`run`] -> [`Finished`].

mod arguments;
mod bash;
mod catalog;
mod context;
mod detail;
mod diff;
mod edit;
mod glob;
mod grep;
mod grep_sink;
mod ls;
mod matching;
mod prepared;
mod read;
mod refusal;
mod run;
mod seen;
mod shape;
mod spec;
mod suggest;
mod walk;
mod write;

#[cfg(test)]
mod tests;

pub use agentd_sandbox::{Beneath, WardenSlot};
pub use context::{Finished, OnStart, Progress, ProgressSink, Spilled, ToolContext, ToolLimits};
pub use prepared::{PathOp, Prepared, Subject};
pub use run::run;
pub use seen::{FilesSeen, Seen};
pub use spec::{Registry, ToolSpec};
