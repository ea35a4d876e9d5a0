//! What can be wrong with a log.

use agentd_protocol::{Seq, SessionId};

/// Why an event cannot be folded. The session is faulted: its log is not understood, so nothing may be added to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// I2 is broken: an event is missing or repeated.
    #[error("the log of session {session} has a gap: expected event {expected}, found {found}")]
    Gap {
        /// Whose log.
        session: SessionId,
        /// The next seq.
        expected: Seq,
        /// What came instead.
        found: Seq,
    },
    /// The event belongs to another session.
    #[error("event {seq} belongs to session {found}, not to {session}")]
    OtherSession {
        /// Where.
        seq: Seq,
        /// Whose log this is.
        session: SessionId,
        /// Whose event it is.
        found: SessionId,
    },
    /// A newer version wrote it.
    #[error("event {seq} of session {session} has a type that this version does not know")]
    UnknownType {
        /// Whose log.
        session: SessionId,
        /// Where.
        seq: Seq,
    },
    /// It cannot have happened after what came before it.
    #[error("event {seq} ({kind}) of session {session} is impossible here: {why}")]
    Impossible {
        /// Whose log.
        session: SessionId,
        /// Where.
        seq: Seq,
        /// The event's type.
        kind: &'static str,
        /// What contradicts it.
        why: &'static str,
    },
}
