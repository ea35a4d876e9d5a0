//! Payloads of the changes that fit a conversation to its model's window. They change what is sent, never the log.

use crate::event::Seq;
use serde::{Deserialize, Serialize};

/// Why a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CompactionCause {
    /// The model rejected it as too long.
    #[default]
    Overflow,
    /// It approached the end of the window.
    Threshold,
    /// A principal requested it.
    Manual,
}

impl CompactionCause {
    /// The cause as the log writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Threshold => "threshold",
            Self::Manual => "manual",
        }
    }
}

/// A file in its last state known to the conversation, shown again after a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AttachedFile {
    /// Its path as the model wrote it.
    pub path: String,
    /// Its content; empty if the file changed after the conversation last showed it.
    pub text: String,
}

/// `context.pruned`: from here on the model sees a short note in place of old tool results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ContextPruned {
    /// The last event whose results are pruned.
    pub to_seq: Seq,
    /// How many results were pruned.
    pub results: u32,
    /// Tokens before.
    pub tokens_before: u64,
    /// Tokens after.
    pub tokens_after: u64,
}

/// `context.trimmed`: from here on the model does not see the messages between the task and `to_seq`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ContextTrimmed {
    /// The last event that is trimmed.
    pub to_seq: Seq,
    /// How many messages were trimmed.
    pub messages: u32,
    /// Tokens before.
    pub tokens_before: u64,
    /// Tokens after.
    pub tokens_after: u64,
}

/// `compaction.asked`: a principal requested a compaction; `context.compacted` or `context.kept` follows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CompactionAsked {}

/// `context.kept`: a requested compaction left the conversation as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ContextKept {
    /// Why nothing was compacted.
    pub reason: String,
}
