//! Payloads of hooks: commands of the operator that agentd runs on certain events.

use crate::call::VerdictKind;
use crate::ids::{InputId, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The event that a hook runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum HookEvent {
    /// The rules are about to allow a call or to ask a person about it.
    PreToolUse,
    /// A call succeeded.
    PostToolUse,
    /// A call ended in any other way.
    PostToolUseFailure,
    /// agentd is about to ask a person about a call.
    PermissionRequest,
    /// An input is about to join the conversation.
    UserPromptSubmit,
    /// A session was created.
    SessionStart,
    /// A session was closed.
    SessionEnd,
    /// A turn is about to end by itself.
    Stop,
    /// The same, for a session that has a parent.
    SubagentStop,
    /// A person should be notified: of a question, or of a turn that ended.
    Notification,
    /// A summary is about to replace the start of a conversation.
    Compaction,
}

impl HookEvent {
    /// All events.
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

    /// Whether the event is about a tool call.
    #[must_use]
    pub const fn is_of_call(self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PostToolUse | Self::PostToolUseFailure | Self::PermissionRequest
        )
    }

    /// Whether a hook may prevent what the event announces.
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
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HookStatus {
    /// It answered, or had nothing to add.
    Ok,
    /// It objected through its exit code.
    Blocked,
    /// It could not run, or its answer was malformed.
    Failed,
    /// It ran out of time.
    Timeout,
}

/// `hook.finished`: the answer of a hook about a tool call, an input, or the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HookFinished {
    /// The call, if the event is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<ToolCallId>,
    /// The input that was about to join, if the event is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<InputId>,
    /// The hook's configured name.
    pub hook: String,
    /// The event that it ran on.
    pub event: HookEvent,
    /// How it ended.
    pub status: HookStatus,
    /// Its decision; it can only narrow what rules and people decide, unless the operator lets it answer a question.
    /// If it denies the end of a turn, the turn continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<VerdictKind>,
    /// Why it decided so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The new input of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Additional context for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The text that the model reads instead of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The tool's own result, if another text replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

impl HookFinished {
    /// The record of hooks that could not run: whatever they could have prevented is denied, or asked of a person (I7).
    #[must_use]
    pub fn lost(event: HookEvent, why: &str) -> Self {
        let decision = match event {
            HookEvent::PermissionRequest => Some(VerdictKind::Ask),
            _ => event.prevents().then_some(VerdictKind::Deny),
        };
        Self {
            tool_call: None,
            prompt: None,
            hook: "*".to_owned(),
            event,
            status: HookStatus::Failed,
            decision,
            reason: Some(format!("could not run the hooks: {why}")),
            input: None,
            context: None,
            output: None,
            replaced: None,
            duration_ms: 0,
        }
    }

    /// The context that hooks add for the model, each part with its hook's name.
    #[must_use]
    pub fn words(records: &[Self]) -> Option<String> {
        let said: Vec<_> = records
            .iter()
            .filter_map(|record| Some(format!("[hook {}] {}", record.hook, record.context.as_ref()?)))
            .collect();
        (!said.is_empty()).then(|| said.join("\n"))
    }

    /// The hook that objects, and why.
    #[must_use]
    pub fn objection(records: &[Self]) -> Option<String> {
        let denied = |record: &&Self| record.decision == Some(VerdictKind::Deny);
        let record = records.iter().find(denied)?;
        let why = record.reason.as_deref().unwrap_or("it gave no reason");
        Some(format!("hook {}: {why}", record.hook))
    }
}
