//! Which files the session knows, and in which version.

use serde_json::Value;
use std::collections::BTreeMap;

/// The files that a session has read or written, each with the SHA-256 of what it saw. Pure; rebuilt from the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilesSeen(BTreeMap<String, String>);

impl FilesSeen {
    /// Learns from the `details` of a `tool.finished`.
    pub fn apply(&mut self, _details: Option<&Value>) {
        let _ = &self.0;
        todo!()
    }
}
