//! Named fault points: places where a test can kill, panic, fail or delay the process exactly there, not after a pause.
//!
//! Flow: the daemon arms the points in `AGENTD_FAULTS` ([`arm`]). Normal work passes through [`point`] and [`fact`]; an
//! armed one reports it on stderr and performs its action, once. Without the cargo feature `armed` a point is an empty
//! inline function.

#[cfg(feature = "armed")]
mod armed;
mod point;
mod points;

pub use point::{BadFaults, Injected, Kinds, arm, fact, point};
pub use points::{
    AFTER_COMMIT, AFTER_SPAWN, APPLY_DONE, APPLY_NOTED, AUDIT_WRITE, BEFORE_APPEND, BEFORE_SPAWN,
    BEFORE_STORE, BRANCH_MADE, BRANCH_WRITTEN, CHECKPOINT_WRITE, CHECKPOINT_WRITTEN, FACT_AFTER, FACT_BEFORE,
    FEED_PUBLISH, FILES_BROUGHT, FILES_PACKED, GATE_JUDGE, HOOK_RUN, IN_BATCH, MCP_AFTER, MCP_BEFORE,
    MODEL_ANSWER, MODEL_FIRST, MODEL_START, POINTS, RESTORE_DONE, RESTORE_FILE, REWORK_AFTER, REWORK_BEFORE,
    SESSION_CANCEL, SESSION_COLD, SESSION_CREATE, SESSION_LOAD, WEBHOOK_NOTE, WEBHOOK_SEND, WORKSPACE_BEGUN,
    WORKSPACE_BRANCHED, WORKSPACE_EMPTIED, WORKSPACE_FILLED, WORKSPACE_MADE, WORKSPACE_REMOVING,
    WORKSPACE_UNLINKED,
};
