//! The answer of commands that only change a session.

use crate::event::Seq;
use serde::{Deserialize, Serialize};

/// Answer of commands that answer nothing else: the log's head after it, durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The log's head.
    pub seq: Seq,
    /// Only of `turn.cancel` on a full disk: everything that ran was ended, and the log does not have it yet. It will when
    /// there is space; a daemon that dies before that goes on with the turn at its next start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

impl Done {
    /// It is durable.
    #[must_use]
    pub const fn at(seq: Seq) -> Self {
        Self { seq, pending: false }
    }
}
