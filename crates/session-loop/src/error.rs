//! Errors of a loop. An actor error means: this incarnation is corrupt, fold the log again.

use agentd_protocol::Fault;
use agentd_store::StoreError;
use agentd_turn::FoldError;

/// Why a session cannot be loaded, or why its loop fails.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The log cannot be read: the session is faulted until a person looks at it.
    #[error("cannot interpret the log: {0}")]
    Fold(#[from] FoldError),
    /// A line of the log is not an event.
    #[error("cannot parse event {seq}: {source}")]
    Line {
        /// The line's seq.
        seq: u64,
        /// The cause.
        source: StoreError,
    },
    /// A line of the log differs from what was written.
    #[error("event {seq} of the log is damaged: its bytes differ from what was written")]
    Damaged {
        /// The line's seq.
        seq: u64,
    },
    /// The store has set the session aside.
    #[error("{0}; restore it from a backup, or delete it")]
    Aside(StoreError),
    /// The log ends before its head.
    #[error("the log ends at event {found}, but its head is {head}")]
    Short {
        /// The last event found.
        found: u64,
        /// The head.
        head: u64,
    },
    /// The session cannot be loaded now.
    #[error("{0}")]
    Refused(Fault),
    /// An event cannot be encoded.
    #[error("cannot encode an event: {0}")]
    Encode(StoreError),
}
