//! The contents of changed files before the change, for undo.

use crate::change_set::FileChange;
use crate::context::Finished;
use crate::diff::change;
use crate::seen::sha256;
use agentd_protocol::{ToolOutcome, ToolStatus};
use serde_json::{Map, Value, json};

/// The content of a file before a call changed it, to be stored as a blob under this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreImage {
    /// The SHA-256 of the content in lower-case hex, which is also the blob's name.
    pub sha256: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// The result of changing files: the text for the model, the diff for people, and the undo data for the log. `of` names the
/// call that changes them. `said` receives the id for undoing the change.
pub(crate) fn changed(of: &str, said: impl FnOnce(&str) -> String, changes: Vec<FileChange>) -> Finished {
    let mut diffs = String::new();
    let mut listed = Vec::new();
    let mut pre_images = Vec::new();
    let (mut added, mut removed) = (0, 0);
    for one in changes {
        let path = one.path.to_string_lossy().into_owned();
        let before = one.before.as_ref().map(|before| before.content.as_slice());
        let diff = change(&path, before, one.after.as_deref());
        diffs.push_str(&diff.text);
        (added, removed) = (added + diff.added, removed + diff.removed);
        let before_sha256 = before.map(sha256);
        listed.push(json!({
            "path": path,
            "before_sha256": before_sha256,
            "after_sha256": one.after.as_deref().map(sha256),
            "mode": one.before.as_ref().map(|before| before.mode),
        }));
        if let (Some(sha256), Some(before)) = (before_sha256, one.before) {
            let bytes = before.content;
            pre_images.push(PreImage { sha256, bytes });
        }
    }
    let mut details = Map::new();
    if let [one] = listed.as_slice() {
        // The fields of a single file, which consumers of one file look for.
        details.insert("path".to_owned(), field(one, "path"));
        details.insert("sha256".to_owned(), field(one, "after_sha256"));
        details.insert("sha256_before".to_owned(), field(one, "before_sha256"));
    }
    let undo_id = undo_id(of, &Value::from(listed.as_slice()).to_string());
    let said = said(&undo_id);
    details.insert("added".to_owned(), Value::from(added));
    details.insert("removed".to_owned(), Value::from(removed));
    details.insert("undo_id".to_owned(), Value::from(undo_id));
    details.insert("changes".to_owned(), Value::from(listed));
    let outcome = ToolOutcome {
        display: Some(diffs),
        details: Some(Value::Object(details)),
        ..ToolOutcome::text(ToolStatus::Ok, said)
    };
    Finished {
        pre_images,
        ..outcome.into()
    }
}

fn field(value: &Value, name: &str) -> Value {
    value.get(name).cloned().unwrap_or_default()
}

/// The id of a change: of what was changed, and of who changed it, so that equal changes have different ids.
#[must_use]
pub fn undo_id(of: &str, what: &str) -> String {
    let mut id = sha256(format!("{of}\n{what}").as_bytes());
    id.truncate(12);
    id
}
