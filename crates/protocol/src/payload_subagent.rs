//! Payloads of sub-agents: sessions that do a task for another session. Also what a whole tree of them spends.

use crate::grant::{Grant, SharedPlace};
use crate::ids::{SessionId, ToolCallId};
use crate::vocabulary::EndReason;
use serde::{Deserialize, Serialize};

/// The place of a sub-agent in its tree. It is valid only if the session's id follows from its parent and the call: a
/// copy of the log (a fork, an import) works for no one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Lineage {
    /// The session at the top of the tree.
    pub root: SessionId,
    /// The call of the parent that the sub-agent answers.
    pub tool_call: ToolCallId,
    /// Its distance from the root: 1 is a child of the root.
    pub depth: u32,
    /// The titles from the root down to its parent.
    #[serde(default)]
    pub path: Vec<String>,
    /// What people granted its parent for the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// The project of its parent's workspace, in which it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<SharedPlace>,
}

/// The part of a budget that sessions have spent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Spent {
    /// Tokens.
    #[serde(default)]
    pub tokens: u64,
    /// US dollars.
    #[serde(default)]
    pub usd: f64,
    /// Milliseconds spent inside turns.
    #[serde(default)]
    pub time_ms: u64,
    /// Steps.
    #[serde(default)]
    pub steps: u64,
}

impl Spent {
    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            usd: self.usd + other.usd,
            time_ms: self.time_ms.saturating_add(other.time_ms),
            steps: self.steps.saturating_add(other.steps),
        }
    }
}

/// `subagent.started`: a call starts a session of its own, which is created once this event is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubagentStarted {
    /// The call.
    pub tool_call: ToolCallId,
    /// The new session.
    pub child: SessionId,
    /// Its purpose, in a few words.
    pub purpose: String,
}

/// `subagent.finished`: the session and everything that it started have ended; occurs once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubagentFinished {
    /// The call.
    pub tool_call: ToolCallId,
    /// The session that ended.
    pub child: SessionId,
    /// How its last turn ended; absent: it had no turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// The beginning of its result; the result of the call has the whole text.
    #[serde(default)]
    pub result: String,
    /// The spending of the session and of everything below it.
    #[serde(default)]
    pub spent: Spent,
}

/// The id of the session that a call starts. It is always the same, so a repetition after a crash finds the session.
#[must_use]
pub fn child_of(parent: SessionId, call: ToolCallId) -> SessionId {
    let (mut id, parent) = (*call.as_bytes(), parent.as_bytes());
    // The first six bytes are time and stay: later sessions sort later.
    for (byte, other) in id.iter_mut().zip(parent).skip(6) {
        *byte ^= other.rotate_left(1);
    }
    let [a, b, c, d, e, f, random @ ..] = id;
    let at_ms = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    SessionId::from_parts(at_ms, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i4_a_call_of_a_session_becomes_the_same_session_each_time_and_no_others() {
        let call = |n: u8| ToolCallId::from_parts(1_763_629_200_123, [n; 10]);
        let parent = |n: u8| SessionId::from_parts(77, [n; 10]);
        let child = child_of(parent(1), call(2));
        assert_eq!(child, child_of(parent(1), call(2)));
        assert_ne!(child, child_of(parent(1), call(3)));
        assert_ne!(child, child_of(parent(3), call(2)));
        let later = ToolCallId::from_parts(1_763_629_200_124, [0; 10]);
        assert!(child < child_of(parent(9), later), "its time is the call's");
        assert_eq!(
            child.to_string().as_bytes().get(14),
            Some(&b'7'),
            "a UUID of version 7"
        );
    }

    #[test]
    fn spending_adds_up() {
        let one = Spent {
            tokens: 1,
            usd: 0.5,
            time_ms: 3,
            steps: 4,
        };
        assert_eq!(
            one.and(one),
            Spent {
                tokens: 2,
                usd: 1.0,
                time_ms: 6,
                steps: 8
            }
        );
    }
}
