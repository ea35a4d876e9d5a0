//! What can go wrong in a loop. An actor error means: this incarnation is corrupt, fold the log again.

use agentd_protocol::Fault;
use agentd_store::StoreError;
use agentd_turn::FoldError;

/// Why a session cannot be loaded, or why its loop fails.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The log is not understood: the session is faulted until a person looks at it.
    #[error("the log is not understood: {0}")]
    Fold(#[from] FoldError),
    /// A line of the log is no event.
    #[error("event {seq} cannot be read: {source}")]
    Line {
        /// Which.
        seq: u64,
        /// Why.
        source: StoreError,
    },
    /// A line of the log is not what was written.
    #[error("event {seq} of the log was damaged: its bytes are not those that were written")]
    Damaged {
        /// Which.
        seq: u64,
    },
    /// The log ends before its head.
    #[error("the log ends at event {found}, but its head is {head}")]
    Short {
        /// The last event found.
        found: u64,
        /// The head.
        head: u64,
    },
    /// It cannot be loaded now.
    #[error("{0}")]
    Refused(Fault),
    /// An event cannot be written down.
    #[error("an event cannot be encoded: {0}")]
    Encode(StoreError),
}

impl LoopError {
    /// Whether loading again cannot help.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::Fold(_) | Self::Line { .. } | Self::Damaged { .. } | Self::Short { .. }
        )
    }
}
