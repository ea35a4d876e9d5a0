//! The names of the fault points. The code passes each one in a single place.

/// Before an append is queued.
pub const BEFORE_APPEND: &str = "store.before_append";
/// In the transaction, before COMMIT.
pub const IN_BATCH: &str = "store.in_batch";
/// After COMMIT, before the answer.
pub const AFTER_COMMIT: &str = "store.after_commit";
/// Before an append with an event of the given kind: `fact.before:approval.decided`.
pub const FACT_BEFORE: &str = "fact.before";
/// After the commit of such an append, before the session learns of it.
pub const FACT_AFTER: &str = "fact.after";
/// A session is about to be created; nothing of it exists yet.
pub const SESSION_CREATE: &str = "session.create";
/// A cold session is about to be loaded.
pub const SESSION_LOAD: &str = "session.load";
/// A session is about to leave memory.
pub const SESSION_COLD: &str = "session.cold";
/// A principal cancels a turn.
pub const SESSION_CANCEL: &str = "session.cancel";
/// The gate judges a call.
pub const GATE_JUDGE: &str = "gate.judge";
/// A hook is about to run.
pub const HOOK_RUN: &str = "hook.run";
/// A model call is admitted and about to be sent.
pub const MODEL_START: &str = "model.start";
/// The first piece of an answer has arrived.
pub const MODEL_FIRST: &str = "model.first_delta";
/// The whole answer has arrived, and its session does not know it yet.
pub const MODEL_ANSWER: &str = "model.answer";
/// After the intent of a tool call is durable, before its effect starts.
pub const BEFORE_SPAWN: &str = "tool.before_spawn";
/// After the effect started.
pub const AFTER_SPAWN: &str = "tool.after_spawn";
/// After the effect ended, before its result is stored.
pub const BEFORE_STORE: &str = "tool.before_store";
/// Before files are put back.
pub const REWORK_BEFORE: &str = "rework.before";
/// After files were put back, before that is stored.
pub const REWORK_AFTER: &str = "rework.after";
/// Files of a directory have changed, and the change is about to be recorded.
pub const CHECKPOINT_WRITE: &str = "checkpoint.write";
/// The objects are written; agentd has not noted yet what they contain.
pub const CHECKPOINT_WRITTEN: &str = "checkpoint.written";
/// Before one of the files of a checkpoint is put back.
pub const RESTORE_FILE: &str = "restore.file";
/// All files of a checkpoint are back, before that is stored.
pub const RESTORE_DONE: &str = "restore.done";
/// The note of what is to be applied is durable; nothing is applied yet.
pub const APPLY_NOTED: &str = "apply.noted";
/// Everything is applied; the note of it is still there.
pub const APPLY_DONE: &str = "apply.done";
/// The objects of a new branch are in the repository; the branch is not.
pub const BRANCH_WRITTEN: &str = "branch.written";
/// The branch exists; the caller has no answer yet.
pub const BRANCH_MADE: &str = "branch.made";
/// The files of a checkpoint are packed; the store does not have them yet.
pub const FILES_PACKED: &str = "files.packed";
/// A lost workspace has its files again; the log does not say so yet.
pub const FILES_BROUGHT: &str = "files.brought";
/// Before a tool server is called.
pub const MCP_BEFORE: &str = "mcp.before_call";
/// After the tool server answered.
pub const MCP_AFTER: &str = "mcp.after_call";
/// A line of `audit.jsonl` is about to be written.
pub const AUDIT_WRITE: &str = "audit.write";
/// A webhook is about to be sent.
pub const WEBHOOK_SEND: &str = "webhook.send";
/// An event is about to become a note for other programs, if there is something to report.
pub const WEBHOOK_NOTE: &str = "webhook.note";
/// Viewers are about to be notified of a commit.
pub const FEED_PUBLISH: &str = "feed.publish";
/// The record of a workspace is durable; nothing else of it exists.
pub const WORKSPACE_BEGUN: &str = "workspace.begun";
/// The branch of a worktree exists; git does not know the worktree yet.
pub const WORKSPACE_BRANCHED: &str = "workspace.branched";
/// The files of a workspace are there; its record does not say so yet.
pub const WORKSPACE_FILLED: &str = "workspace.filled";
/// A workspace is whole; its session does not exist yet.
pub const WORKSPACE_MADE: &str = "workspace.made";
/// The record says that a workspace is to be removed.
pub const WORKSPACE_REMOVING: &str = "workspace.removing";
/// The repository of a removed worktree knows nothing of it any more; its files are still there.
pub const WORKSPACE_UNLINKED: &str = "workspace.unlinked";
/// The files of a removed workspace are gone; its record is still there.
pub const WORKSPACE_EMPTIED: &str = "workspace.emptied";

/// All points.
pub const POINTS: [&str; 42] = [
    BEFORE_APPEND,
    IN_BATCH,
    AFTER_COMMIT,
    FACT_BEFORE,
    FACT_AFTER,
    SESSION_CREATE,
    SESSION_LOAD,
    SESSION_COLD,
    SESSION_CANCEL,
    GATE_JUDGE,
    HOOK_RUN,
    MODEL_START,
    MODEL_FIRST,
    MODEL_ANSWER,
    BEFORE_SPAWN,
    AFTER_SPAWN,
    BEFORE_STORE,
    REWORK_BEFORE,
    REWORK_AFTER,
    CHECKPOINT_WRITE,
    CHECKPOINT_WRITTEN,
    RESTORE_FILE,
    RESTORE_DONE,
    APPLY_NOTED,
    APPLY_DONE,
    BRANCH_WRITTEN,
    BRANCH_MADE,
    FILES_PACKED,
    FILES_BROUGHT,
    MCP_BEFORE,
    MCP_AFTER,
    AUDIT_WRITE,
    WEBHOOK_SEND,
    WEBHOOK_NOTE,
    FEED_PUBLISH,
    WORKSPACE_BEGUN,
    WORKSPACE_BRANCHED,
    WORKSPACE_FILLED,
    WORKSPACE_MADE,
    WORKSPACE_REMOVING,
    WORKSPACE_UNLINKED,
    WORKSPACE_EMPTIED,
];
