//! `[workspace]`: the files that sessions work on.

use serde::{Deserialize, Serialize};

/// When the files of a working directory are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkpointing {
    /// At the start of a turn, and after each step that may have changed files.
    #[default]
    Step,
    /// At the start and the end of a turn.
    Turn,
    /// Never: undo and diff cover only what the file tools did.
    Off,
}

/// `[workspace]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkspaceConfig {
    /// When the files of a working directory are recorded.
    pub checkpoint: Checkpointing,
    /// A larger file is left out of a checkpoint.
    pub max_file_bytes: u64,
    /// A directory with more files is not recorded.
    pub max_files: u64,
    /// The new and changed files of one checkpoint may have at most this many bytes together.
    pub max_bytes: u64,
    /// The author of commits made of a session's work: `Name <address>`.
    pub author: String,
}

impl Default for WorkspaceConfig {
    fn default() -> Self {
        Self {
            checkpoint: Checkpointing::Step,
            max_file_bytes: 32 << 20,
            max_files: 200_000,
            max_bytes: 2 << 30,
            author: "agentd <agentd@localhost>".to_owned(),
        }
    }
}
