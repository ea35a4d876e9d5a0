//! The tools of an agent: their specs, the checks of their arguments, and what they do.
mod context;
mod prepared;
mod seen;
mod spec;
pub use agentd_sandbox::{Beneath, HelperSlot};
pub use context::{Finished, Progress, ProgressSink, Spilled, ToolContext, ToolLimits};
pub use prepared::{PathOp, Prepared, Subject};
pub use seen::FilesSeen;
pub use spec::{Registry, ToolSpec};

/// Runs a prepared call. Dropping the future stops it (a command is killed).
pub async fn run(prepared: &Prepared, ctx: ToolContext) -> Finished {
    let _ = (prepared, ctx);
    todo!()
}
