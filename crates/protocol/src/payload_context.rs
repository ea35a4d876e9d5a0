//! What happens to a conversation so that it fits its model: each of these changes what is sent, never the log.

use crate::event::Seq;
use serde::{Deserialize, Serialize};

/// Why a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionCause {
    /// The model refused it as too long.
    #[default]
    Overflow,
    /// It came near the window's end.
    Threshold,
    /// A principal asked for it.
    Manual,
}

impl CompactionCause {
    /// The word in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Threshold => "threshold",
            Self::Manual => "manual",
        }
    }
}

/// A file as the conversation knew it last, shown again after a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedFile {
    /// Its path as the model wrote it.
    pub path: String,
    /// What was in it; empty: it was changed since it was last shown.
    pub text: String,
}

/// `context.pruned`: from here on the model sees a short note in the place of old tool results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextPruned {
    /// Results up to here.
    pub to_seq: Seq,
    /// How many.
    pub results: u32,
    /// Before.
    pub tokens_before: u64,
    /// After.
    pub tokens_after: u64,
}

/// `context.trimmed`: from here on the model does not see the messages after the task up to here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextTrimmed {
    /// Messages up to here.
    pub to_seq: Seq,
    /// How many.
    pub messages: u32,
    /// Before.
    pub tokens_before: u64,
    /// After.
    pub tokens_after: u64,
}

/// `compaction.asked`: a principal wants the conversation compacted; `context.compacted` or `context.kept` follows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CompactionAsked {}

/// `context.kept`: the conversation that was to be compacted stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextKept {
    /// Why.
    pub reason: String,
}
