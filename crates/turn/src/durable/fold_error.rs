//! Errors that make a log unusable.

use agentd_protocol::{Seq, SessionId};

/// Why an event cannot be folded. The session is faulted: its log cannot be interpreted, so nothing may be appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// I2 is broken: an event is missing or repeated.
    #[error("the log of session {session} has a gap: expected event {expected}, found {found}")]
    Gap {
        /// The session that the log belongs to.
        session: SessionId,
        /// The next seq.
        expected: Seq,
        /// The seq that was found instead.
        found: Seq,
    },
    /// The event belongs to another session.
    #[error("event {seq} belongs to session {found}, not to {session}")]
    OtherSession {
        /// The position in the log.
        seq: Seq,
        /// The session that the log belongs to.
        session: SessionId,
        /// The session that the event belongs to.
        found: SessionId,
    },
    /// A newer version of agentd wrote the event.
    #[error("event {seq} of session {session} has a type that this version does not know")]
    UnknownType {
        /// The session that the log belongs to.
        session: SessionId,
        /// The position in the log.
        seq: Seq,
    },
    /// The event contradicts the log before it.
    #[error("event {seq} ({kind}) of session {session} is impossible here: {why}")]
    Impossible {
        /// The session that the log belongs to.
        session: SessionId,
        /// The position in the log.
        seq: Seq,
        /// The event's type.
        kind: &'static str,
        /// What contradicts it.
        why: &'static str,
    },
}
