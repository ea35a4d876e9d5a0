//! The stored form of an event: its JSON line, encoded once and shared by the store, the feed and every viewer.

use crate::StoreError;
use agentd_protocol::{Event, Seq, Timestamp};
use bytes::Bytes;
use std::borrow::Cow;

/// An event as it is stored. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedEvent {
    /// Its place in the log.
    pub seq: Seq,
    /// When it was decided.
    pub at: Timestamp,
    /// The contract's name of its type.
    pub kind: Cow<'static, str>,
    /// The exact JSON line, without the newline.
    pub body: Bytes,
}

impl EncodedEvent {
    /// Encodes an event; these bytes are what is stored, sent and exported.
    ///
    /// # Errors
    /// The event cannot be written as JSON.
    pub fn encode(event: &Event) -> Result<Self, StoreError> {
        Ok(Self {
            seq: event.seq,
            at: event.at,
            kind: Cow::Borrowed(event.body.kind()),
            body: serde_json::to_vec(event)?.into(),
        })
    }

    /// The sum of a line, kept beside it: a line whose bytes changed on the disk may still be an event, but not this one.
    #[must_use]
    pub(crate) fn sum(body: &[u8]) -> u32 {
        crc32fast::hash(body)
    }

    /// Reads a stored line back. An event of an unknown type parses, too.
    ///
    /// # Errors
    /// The line is not an event.
    pub fn decode(body: &[u8]) -> Result<Event, StoreError> {
        Ok(serde_json::from_slice(body)?)
    }
}
