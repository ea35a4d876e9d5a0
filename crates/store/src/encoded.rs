//! The stored form of an event: its JSON line, encoded once and shared by the store, the feed and every viewer.

use crate::StoreError;
use agentd_protocol::{Event, Seq, Timestamp};
use bytes::Bytes;
use std::borrow::Cow;

/// Marks a checksum over all columns of an event; without it, the checksum is that of the line alone.
const OF_ALL: i64 = 1 << 62;

/// The columns of a stored event. An event that changed on disk may still parse, but its checksum differs.
#[derive(Debug, Clone, Copy)]
pub struct EventColumns<'a> {
    /// The id of its session as 32 hex digits.
    pub uid: &'a str,
    /// Its place in the fleet-wide stream.
    pub cursor: i64,
    /// Its place in the log.
    pub seq: i64,
    /// The fencing number of the append.
    pub epoch: i64,
    /// The time of the decision.
    pub at_ms: i64,
    /// Its type.
    pub kind: &'a str,
    /// The id of the append, at its last event.
    pub append_id: Option<&'a [u8]>,
    /// The line.
    pub body: &'a [u8],
}

impl EventColumns<'_> {
    /// The checksum. A database server that assigns the cursor adds it to the checksum at cursor 0 by XOR.
    #[must_use]
    pub fn sum(&self) -> i64 {
        let mut sum = crc32fast::Hasher::new();
        let mut add = |bytes: &[u8]| {
            sum.update(&bytes.len().to_be_bytes());
            sum.update(bytes);
        };
        add(self.uid.as_bytes());
        add(self.kind.as_bytes());
        add(self.append_id.unwrap_or_default());
        for number in [self.seq, self.epoch, self.at_ms] {
            add(&number.to_be_bytes());
        }
        add(self.body);
        (OF_ALL | i64::from(sum.finalize())) ^ self.cursor
    }

    /// Whether the event matches its stored checksum. Events without one are older than checksums; those of the next
    /// versions have one of their line alone, which names the session, the seq, the time and the type.
    #[must_use]
    pub fn is_whole(&self, sum: Option<i64>) -> bool {
        sum.is_none_or(|sum| sum == self.sum() || sum == i64::from(EncodedEvent::sum(self.body)))
    }
}

/// A stored event. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedEvent {
    /// Its place in the log.
    pub seq: Seq,
    /// The time of the decision.
    pub at: Timestamp,
    /// The event type as the contract names it.
    pub kind: Cow<'static, str>,
    /// The exact JSON line, without the newline.
    pub body: Bytes,
}

impl EncodedEvent {
    /// Encodes an event. The same bytes are stored, sent and exported.
    ///
    /// # Errors
    /// The event cannot be encoded as JSON.
    pub fn encode(event: &Event) -> Result<Self, StoreError> {
        Ok(Self {
            seq: event.seq,
            at: event.at,
            kind: Cow::Borrowed(event.body.kind()),
            body: serde_json::to_vec(event)?.into(),
        })
    }

    /// The checksum of a line alone, as earlier versions stored it.
    #[must_use]
    pub fn sum(body: &[u8]) -> u32 {
        crc32fast::hash(body)
    }

    /// Decodes a stored line. Accepts events of unknown types.
    ///
    /// # Errors
    /// The line is not an event.
    pub fn decode(body: &[u8]) -> Result<Event, StoreError> {
        Ok(serde_json::from_slice(body)?)
    }
}
