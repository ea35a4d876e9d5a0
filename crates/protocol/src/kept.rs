//! Contents that are kept beside a log: outputs that were too long for their results.

use crate::event::Event;
use crate::event_body::EventBody;
use serde::{Deserialize, Serialize};

/// `session.blob`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlobParams {
    /// The content's name, as `truncated.spill` of a `tool.finished` has it.
    pub name: String,
    /// Where the part begins.
    pub offset: u64,
}

/// Answer of `session.blob`, and a line behind the events in an exported file: a part of a content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobPart {
    /// The content's name: its SHA-256 in lower-case hex.
    pub blob: String,
    /// Where the part begins.
    pub at: u64,
    /// Bytes of the whole content.
    pub of: u64,
    /// The bytes in Base64.
    pub data: String,
}

impl Event {
    /// The name of the content that the event, or the event that it quotes, tells of.
    #[must_use]
    pub fn kept_output(&self) -> Option<&str> {
        match &self.body {
            EventBody::ToolFinished(finished) => finished.outcome.truncated.as_ref()?.spill.as_deref(),
            EventBody::ImportedEvent(imported) => imported.event.hearsay().kept_output(),
            _ => None,
        }
    }
}
