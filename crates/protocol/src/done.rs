//! The answer of commands that only change a session.

use crate::event::Seq;
use serde::{Deserialize, Serialize};

/// Answer of commands that return nothing else: the head of the log after the command, durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Done {
    /// The log's head.
    pub seq: Seq,
    /// Only for `turn.cancel` on a full disk: everything that ran has ended, but the log records it only once there is
    /// space. A daemon that dies before then continues the turn at its next start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

impl Done {
    /// The answer for a log that is durable up to `seq`.
    #[must_use]
    pub const fn at(seq: Seq) -> Self {
        Self { seq, pending: false }
    }
}
