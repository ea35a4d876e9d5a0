//! Payloads of hooks: commands of the operator that are told what happens.

use crate::call::VerdictKind;
use crate::ids::{InputId, ToolCallId};
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
    /// A person is about to be asked about a call.
    PermissionRequest,
    /// An input is about to join the conversation.
    UserPromptSubmit,
    /// A session was created.
    SessionStart,
    /// A session was closed.
    SessionEnd,
    /// A turn is about to end by itself.
    Stop,
    /// The same of a session that has a parent.
    SubagentStop,
    /// A person has to be told: a question, or a turn that ended.
    Notification,
    /// The beginning of a conversation is about to become a summary.
    Compaction,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PermissionRequest,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::SessionEnd,
        Self::Stop,
        Self::SubagentStop,
        Self::Notification,
        Self::Compaction,
    ];

    /// It is about a tool call.
    #[must_use]
    pub const fn is_of_call(self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PostToolUse | Self::PostToolUseFailure | Self::PermissionRequest
        )
    }

    /// A hook may prevent what it is told of.
    #[must_use]
    pub const fn prevents(self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PermissionRequest | Self::UserPromptSubmit | Self::Compaction
        )
    }
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

/// `hook.finished`: what a hook said of a tool call, an input, or the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookFinished {
    /// The call, where it was told of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<ToolCallId>,
    /// The input that was to join, where it was told of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<InputId>,
    /// The hook's configured name.
    pub hook: String,
    /// What it was told of.
    pub event: HookEvent,
    /// How it ended.
    pub status: HookStatus,
    /// What it wants done; it can only narrow what rules and people decide, unless the operator lets it answer a question.
    /// A denial of an end means that the turn goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<VerdictKind>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The input that the call has from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// What the model is told besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What the model reads in the place of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The result as the tool gave it, where another took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

impl HookFinished {
    /// What hooks add for the model, each with its name.
    #[must_use]
    pub fn words(records: &[Self]) -> Option<String> {
        let said: Vec<_> = records
            .iter()
            .filter_map(|record| Some(format!("[hook {}] {}", record.hook, record.context.as_ref()?)))
            .collect();
        (!said.is_empty()).then(|| said.join("\n"))
    }

    /// Which hook objects, and why.
    #[must_use]
    pub fn objection(records: &[Self]) -> Option<String> {
        let denied = |record: &&Self| record.decision == Some(VerdictKind::Deny);
        let record = records.iter().find(denied)?;
        let why = record.reason.as_deref().unwrap_or("it gave no reason");
        Some(format!("hook {}: {why}", record.hook))
    }
}
