//! Which files the session knows, and in which version.

use crate::focus::keywords;
use agentd_protocol::{EventBody, FileChanged};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

/// The most changes that can be undone; older ones are forgotten.
const MAX_UNDOS: usize = 256;
/// The most stored outputs that can be read; older ones are forgotten.
const MAX_OUTPUTS: usize = 1_024;

/// The files that a session has read or written, each with the SHA-256 of what it saw, and the changes that it made.
/// Pure; rebuilt from the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilesSeen {
    known: BTreeMap<String, String>,
    /// Oldest first.
    undos: VecDeque<Undo>,
    /// The names of outputs that were too long for their results, oldest first.
    outputs: VecDeque<String>,
    /// Words of the last input.
    words: Vec<String>,
    /// Whether the session wants the parts of a long output that are about these words.
    focused: bool,
}

/// A change, with what is needed to undo it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undo {
    pub(crate) id: String,
    pub(crate) files: Vec<UndoFile>,
}

/// One file of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UndoFile {
    pub(crate) path: String,
    /// The hash of its content before; absent if it did not exist.
    pub(crate) before: Option<String>,
    /// The hash of its content afterwards; absent if it was deleted.
    pub(crate) after: Option<String>,
    /// Its permission bits before.
    pub(crate) mode: Option<u32>,
}

impl From<&FileChanged> for UndoFile {
    fn from(changed: &FileChanged) -> Self {
        Self {
            path: changed.path.clone(),
            before: changed.before_sha256.clone(),
            after: changed.after_sha256.clone(),
            mode: changed.mode,
        }
    }
}

impl UndoFile {
    fn of(change: &Value) -> Option<Self> {
        let text = |name| change.get(name).and_then(Value::as_str).map(str::to_owned);
        let mode = change.get("mode").and_then(Value::as_u64);
        Some(Self {
            path: text("path")?,
            before: text("before_sha256"),
            after: text("after_sha256"),
            mode: mode.and_then(|mode| u32::try_from(mode).ok()),
        })
    }
}

/// A session's knowledge of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It was never read.
    Never,
    /// It was read in another version.
    Changed,
    /// This is the version that was last read or written.
    Same,
}

impl FilesSeen {
    /// Whether an event carries anything to learn.
    #[must_use]
    pub const fn learns_from(event: &EventBody) -> bool {
        matches!(
            event,
            EventBody::SessionCreated(_)
                | EventBody::ToolFinished(_)
                | EventBody::InputAccepted(_)
                | EventBody::UndoApplied(_)
                | EventBody::SessionImported(_)
        )
    }

    /// Learns from an event of the session's log.
    pub fn learn(&mut self, event: &EventBody) {
        if let EventBody::ToolFinished(finished) = event {
            self.apply(finished.outcome.details.as_ref());
            let spill = finished.outcome.truncated.as_ref();
            if let Some(name) = spill.and_then(|truncated| truncated.spill.as_ref()) {
                self.keeps(name);
            }
        } else if let EventBody::SessionImported(imported) = event {
            imported.blobs.iter().for_each(|name| self.keeps(name));
        } else if let EventBody::SessionCreated(created) = event {
            self.focused = created.limits.keyword_windows;
        } else if let EventBody::InputAccepted(accepted) = event {
            self.words = keywords(&accepted.content);
        } else if let EventBody::UndoApplied(applied) = event {
            // The model has not seen what a person restored, so the known versions stay as they were.
            let files = applied.changes.iter().map(UndoFile::from).collect();
            self.remember(&applied.undo_id, files);
        }
    }

    /// Learns from the `details` of a `tool.finished`, where file tools record paths and content hashes.
    pub fn apply(&mut self, details: Option<&Value>) {
        let text = |name| details.and_then(|details: &Value| details.get(name)?.as_str());
        if let (Some(path), Some(sha256)) = (text("path"), text("sha256")) {
            self.known.insert(path.to_owned(), sha256.to_owned());
        }
        let changes = details
            .and_then(|details| details.get("changes")?.as_array())
            .map(Vec::as_slice)
            .unwrap_or_default();
        let files: Vec<UndoFile> = changes.iter().filter_map(UndoFile::of).collect();
        for file in &files {
            match &file.after {
                Some(after) => self.known.insert(file.path.clone(), after.clone()),
                None => self.known.remove(&file.path),
            };
        }
        if let Some(id) = text("undo_id") {
            self.remember(id, files);
        }
    }

    fn keeps(&mut self, output: &str) {
        if self.outputs.len() >= MAX_OUTPUTS {
            self.outputs.pop_front();
        }
        self.outputs.push_back(output.to_owned());
    }

    fn remember(&mut self, id: &str, files: Vec<UndoFile>) {
        if files.is_empty() {
            return;
        }
        self.undos.retain(|undo| undo.id != id);
        if self.undos.len() >= MAX_UNDOS {
            self.undos.pop_front();
        }
        let id = id.to_owned();
        self.undos.push_back(Undo { id, files });
    }

    /// Returns to an earlier state of knowledge, when the model's conversation returns to an earlier point.
    pub fn knows_again(&mut self, earlier: Self) {
        self.known = earlier.known;
    }

    /// Whether the session wants the parts of a long output that are about the words of the last input.
    #[must_use]
    pub const fn is_focused(&self) -> bool {
        self.focused
    }

    /// Words of the last input, for finding the relevant parts of a long output.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The full name of a stored output of this session, from a prefix.
    pub(crate) fn kept_output(&self, name: &str) -> Option<&str> {
        let found = self.outputs.iter().rev().find(|output| output.starts_with(name));
        found.map(String::as_str)
    }

    /// A change by its id.
    pub(crate) fn undo(&self, id: &str) -> Option<&Undo> {
        self.undos.iter().rev().find(|undo| undo.id == id)
    }

    /// The session's knowledge of a file with this hash.
    #[must_use]
    pub fn check(&self, path: &str, sha256: &str) -> Seen {
        match self.known.get(path) {
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
    fn seen_files_are_learned_from_result_details() {
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
    fn changes_of_several_files_are_learned_and_old_ones_dropped() {
        let change = |id: usize| {
            json!({ "undo_id": id.to_string(), "changes": [
                { "path": "a", "before_sha256": null, "after_sha256": "1", "mode": null },
                { "path": "b", "before_sha256": "2", "after_sha256": null, "mode": 0o755 },
            ]})
        };
        let mut seen = FilesSeen::default();
        seen.apply(Some(&json!({ "path": "b", "sha256": "2" })));
        for id in 0..=MAX_UNDOS {
            seen.apply(Some(&change(id)));
        }
        assert_eq!(
            (seen.check("a", "1"), seen.check("b", "2")),
            (Seen::Same, Seen::Never)
        );
        let file = |path: &str, before: Option<&str>, after: Option<&str>, mode| UndoFile {
            path: path.to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
            mode,
        };
        let expected = Undo {
            id: "1".to_owned(),
            files: vec![
                file("a", None, Some("1"), None),
                file("b", Some("2"), None, Some(0o755)),
            ],
        };
        assert_eq!((seen.undo("0"), seen.undo("1")), (None, Some(&expected)));
        assert!(seen.undo("256").is_some());
    }

    #[test]
    fn hashes_are_hex() {
        assert_eq!(
            sha256(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
