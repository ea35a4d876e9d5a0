//! The stored form of an event: its JSON line, encoded once and shared by the store, the feed and every viewer.

use crate::StoreError;
use agentd_protocol::{Event, Seq, Timestamp};
use bytes::Bytes;
use std::borrow::Cow;

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

    /// The checksum stored with a line. A line whose bytes changed on disk may still parse, but its checksum differs.
    #[must_use]
    pub fn sum(body: &[u8]) -> u32 {
        crc32fast::hash(body)
    }

    /// Whether a line matches its stored checksum. Lines without one are older than checksums.
    #[must_use]
    pub fn is_whole(body: &[u8], sum: Option<i64>) -> bool {
        sum.is_none_or(|sum| sum == i64::from(Self::sum(body)))
    }

    /// Decodes a stored line. Accepts events of unknown types.
    ///
    /// # Errors
    /// The line is not an event.
    pub fn decode(body: &[u8]) -> Result<Event, StoreError> {
        Ok(serde_json::from_slice(body)?)
    }
}
