//! The frames that a daemon sends: the welcome, answers, and pushes to subscriptions.

use crate::handshake::Welcome;
use agentd_protocol::{CaughtUp, Delta, Fault, Lagged, OpenApproval, Seq, Status, Synced};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap as _};
use serde_json::Value;

/// A frame of a daemon.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerFrame {
    /// The answer to `hello`.
    Welcome(Welcome),
    /// A request succeeded.
    Ok {
        /// The id of the request.
        id: u64,
        /// The answer.
        ok: Value,
    },
    /// A request failed. Without an id the whole connection failed and is closed.
    Fault {
        /// The id of the request.
        id: Option<u64>,
        /// The cause.
        fault: Fault,
    },
    /// A push to a subscription.
    Push {
        /// The subscription.
        sub: u64,
        /// The push.
        push: Push,
    },
    /// A newer frame.
    Unknown,
}

/// A push to a subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum Push {
    /// An event.
    Event(StoredEvent),
    /// A live fragment.
    Delta(Delta),
    /// The subscription has caught up.
    Synced(Synced),
    /// A subscription to the fleet has caught up.
    CaughtUp(CaughtUp),
    /// The viewer was too slow; it must read the missed events from the log.
    Lagged(Lagged),
    /// The subscription has ended.
    Ended(Ended),
    /// A newer push.
    Unknown,
}

/// An event as stored.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// The JSON line, byte for byte.
    pub json: Bytes,
    /// Its position in the fleet-wide order; only in `fleet.watch`.
    pub cursor: Option<u64>,
}

impl std::fmt::Debug for StoredEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredEvent")
            .field("json", &String::from_utf8_lossy(&self.json))
            .field("cursor", &self.cursor)
            .finish()
    }
}

/// A borrowed fragment to push: serializes to the same bytes as [`Push::Delta`] in a frame.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DeltaFrame<'a> {
    /// The subscription.
    pub sub: u64,
    /// The fragment.
    pub delta: &'a Delta,
}

/// Why a subscription ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// A stable code: `end`, `deleted`, `draining`, `failed`.
    pub code: String,
    /// The cause, in words.
    pub message: String,
    /// The cursor where a `fleet.watch` ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
}

/// The union of all frames in wire form.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Flat {
    welcome: Option<Welcome>,
    id: Option<u64>,
    #[serde(deserialize_with = "present")]
    ok: Option<Value>,
    fault: Option<Fault>,
    sub: Option<u64>,
    event: Option<serde_bytes::ByteBuf>,
    cursor: Option<u64>,
    delta: Option<Delta>,
    synced: Option<AnySynced>,
    lagged: Option<Lagged>,
    ended: Option<Ended>,
}

/// `synced` of a session or of the fleet.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AnySynced {
    cursor: Option<u64>,
    seq: Seq,
    status: Option<Status>,
    approvals: Vec<OpenApproval>,
    partial: Option<String>,
}

impl AnySynced {
    fn push(self) -> Option<Push> {
        let caught_up = self.cursor.map(|cursor| Push::CaughtUp(CaughtUp { cursor }));
        caught_up.or_else(|| {
            Some(Push::Synced(Synced {
                seq: self.seq,
                status: self.status?,
                approvals: self.approvals,
                partial: self.partial,
            }))
        })
    }
}

/// A present `nil` is also an answer.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Serialize for ServerFrame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Welcome(welcome) => map.serialize_entry("welcome", welcome)?,
            Self::Ok { id, ok } => {
                map.serialize_entry("id", id)?;
                map.serialize_entry("ok", ok)?;
            }
            Self::Fault { id, fault } => {
                if let Some(id) = id {
                    map.serialize_entry("id", id)?;
                }
                map.serialize_entry("fault", fault)?;
            }
            Self::Push { sub, push } => {
                map.serialize_entry("sub", sub)?;
                match push {
                    Push::Event(event) => {
                        map.serialize_entry("event", serde_bytes::Bytes::new(&event.json))?;
                        if let Some(cursor) = event.cursor {
                            map.serialize_entry("cursor", &cursor)?;
                        }
                    }
                    Push::Delta(delta) => map.serialize_entry("delta", delta)?,
                    Push::Synced(synced) => map.serialize_entry("synced", synced)?,
                    Push::CaughtUp(caught_up) => map.serialize_entry("synced", caught_up)?,
                    Push::Lagged(lagged) => map.serialize_entry("lagged", lagged)?,
                    Push::Ended(ended) => map.serialize_entry("ended", ended)?,
                    Push::Unknown => {}
                }
            }
            Self::Unknown => {}
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ServerFrame {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let flat = Flat::deserialize(deserializer)?;
        if let Some(sub) = flat.sub {
            return Ok(Self::Push {
                sub,
                push: flat.push().unwrap_or(Push::Unknown),
            });
        }
        Ok(match flat {
            Flat {
                welcome: Some(welcome),
                ..
            } => Self::Welcome(welcome),
            Flat {
                id,
                fault: Some(fault),
                ..
            } => Self::Fault { id, fault },
            Flat {
                id: Some(id),
                ok: Some(ok),
                ..
            } => Self::Ok { id, ok },
            _ => Self::Unknown,
        })
    }
}

impl Flat {
    fn push(self) -> Option<Push> {
        let cursor = self.cursor;
        let event = self.event.map(|json| {
            Push::Event(StoredEvent {
                json: json.into_vec().into(),
                cursor,
            })
        });
        event
            .or_else(|| self.delta.map(Push::Delta))
            .or_else(|| self.synced.and_then(AnySynced::push))
            .or_else(|| self.lagged.map(Push::Lagged))
            .or_else(|| self.ended.map(Push::Ended))
    }
}
