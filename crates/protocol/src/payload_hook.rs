//! Payloads of hooks: commands of the operator that are told what happens.

use crate::call::VerdictKind;
use crate::ids::ToolCallId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a hook is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HookEvent {
    /// A call is about to be allowed, or asked about.
    PreToolUse,
    /// A call did what it was asked.
    PostToolUse,
    /// A call ended in another way.
    PostToolUseFailure,
}

/// How a hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookStatus {
    /// It answered, or had nothing to say.
    Ok,
    /// It objected by its exit code.
    Blocked,
    /// It could not be run, or did not answer as hooks do.
    Failed,
    /// It ran out of time.
    Timeout,
}

/// `hook.finished`: what a hook said of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookFinished {
    /// The call.
    pub tool_call: ToolCallId,
    /// The hook's configured name.
    pub hook: String,
    /// What it was told of.
    pub event: HookEvent,
    /// How it ended.
    pub status: HookStatus,
    /// What it wants done with the call; it can only narrow what rules and people decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<VerdictKind>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The input that the call has from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// What the model is told beside the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}
