//! Blobs kept alongside a log: outputs that were too long for their results.

use crate::event::Event;
use crate::event_body::EventBody;
use serde::{Deserialize, Serialize};

/// `session.blob`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BlobParams {
    /// The name of the blob: `truncated.spill` of a `tool.finished`.
    pub name: String,
    /// The byte offset of the part.
    pub offset: u64,
}

/// Answer of `session.blob`, and a line after the events in an exported file: one part of a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BlobPart {
    /// The name of the blob: its SHA-256 in lower-case hex.
    pub blob: String,
    /// The byte offset of the part.
    pub at: u64,
    /// The size of the whole blob in bytes.
    pub of: u64,
    /// The bytes in Base64.
    pub data: String,
}

impl Event {
    /// The name of the kept output that the event, or the event that it quotes, refers to.
    #[must_use]
    pub fn kept_output(&self) -> Option<&str> {
        match &self.body {
            EventBody::ToolFinished(finished) => finished.outcome.truncated.as_ref()?.spill.as_deref(),
            EventBody::ImportedEvent(imported) => imported.event.hearsay().kept_output(),
            _ => None,
        }
    }
}
