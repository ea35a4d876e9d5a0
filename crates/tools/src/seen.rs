//! Which files the session knows, and in which version.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The files that a session has read or written, each with the SHA-256 of what it saw. Pure; rebuilt from the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilesSeen(BTreeMap<String, String>);

/// What a session knows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It was never read.
    Never,
    /// It was read, in another version.
    Changed,
    /// This is the version that was read or written last.
    Same,
}

impl FilesSeen {
    /// Learns from the `details` of a `tool.finished`: Read, Write and Edit leave the path and the hash of the content there.
    pub fn apply(&mut self, details: Option<&Value>) {
        let text = |name| details.and_then(|details: &Value| details.get(name)?.as_str());
        if let (Some(path), Some(sha256)) = (text("path"), text("sha256")) {
            self.0.insert(path.to_owned(), sha256.to_owned());
        }
    }

    /// What is known of a file with this hash.
    #[must_use]
    pub fn check(&self, path: &str, sha256: &str) -> Seen {
        match self.0.get(path) {
            None => Seen::Never,
            Some(known) if known == sha256 => Seen::Same,
            Some(_) => Seen::Changed,
        }
    }
}

/// The hash of a content, in lower-case hex.
pub(crate) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_seen_is_learned_from_the_details_of_results() {
        let mut seen = FilesSeen::default();
        assert_eq!(seen.check("a", "1"), Seen::Never);
        seen.apply(Some(&json!({ "path": "a", "sha256": "1" })));
        seen.apply(Some(&json!({ "path": "b", "lines": 3 })));
        seen.apply(None);
        assert_eq!(
            (seen.check("a", "1"), seen.check("a", "2"), seen.check("b", "1")),
            (Seen::Same, Seen::Changed, Seen::Never)
        );
    }

    #[test]
    fn hashes_are_hex() {
        assert_eq!(
            sha256(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
