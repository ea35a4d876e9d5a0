//! The envelope of a durable fact.

use crate::event_body::EventBody;
use crate::ids::{SessionId, TurnId};
use crate::principal::Principal;
use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};

/// A position in a session's log: from 1, without gaps. 0 is "before the first".
pub type Seq = u64;

/// The version written into `v`.
pub const EVENT_VERSION: u8 = 1;

/// A durable fact in a session's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Event {
    /// The format's version.
    pub v: u8,
    /// The session that owns the log.
    pub session: SessionId,
    /// The position in the log.
    pub seq: Seq,
    /// When agentd decided it.
    pub at: Timestamp,
    /// Who caused it.
    pub by: Principal,
    /// The turn it belongs to; also the trace id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload_session::SessionPaused;

    #[test]
    fn an_event_is_one_flat_json_object() {
        let event = Event {
            v: EVENT_VERSION,
            session: SessionId::NIL,
            seq: 12,
            at: Timestamp(1_763_629_200_123),
            by: Principal::user("ana"),
            turn: None,
            body: EventBody::SessionPaused(SessionPaused {
                reason: "lunch".into(),
            }),
        };
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(
            json,
            r#"{"v":1,"session":"00000000-0000-0000-0000-000000000000","seq":12,"at":"2025-11-20T09:00:00.123Z","by":"user:ana","type":"session.paused","reason":"lunch"}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    }

    #[test]
    fn an_event_of_an_unknown_type_still_parses() {
        let json = r#"{"v":1,"session":"00000000-0000-0000-0000-000000000000","seq":1,"at":"2025-11-20T09:00:00.123Z","by":"agentd","type":"moon.landed","x":{"y":1}}"#;
        assert_eq!(
            serde_json::from_str::<Event>(json).unwrap().body,
            EventBody::Unknown
        );
    }
}
