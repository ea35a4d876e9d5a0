//! Files that a conversation is about: after a compaction, the model is shown again what it had read of them.

use crate::cut;
use crate::prune::CLEARED;
use crate::transcript::{NOTE_MARK, Transcript};
use agentd_protocol::{AttachedFile, Block, Message};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most files that are shown again.
const MAX_FILES: usize = 5;
/// The smallest part of a file that is worth showing.
const MIN_BYTES: usize = 400;
/// The argument names that models use for a file's path, and for the whole new content.
const PATHS: [&str; 7] = [
    "file_path",
    "path",
    "file",
    "filename",
    "filepath",
    "filePath",
    "target_file",
];
const CONTENTS: [&str; 4] = ["content", "contents", "text", "file_content"];

/// Facts about a file from the conversation.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    text: String,
    changed: bool,
    /// A larger number is more recent.
    order: usize,
}

impl Transcript {
    /// The files that leave the conversation with its first `end` messages, in at most `max_bytes`: changed files
    /// come first, then the most recent.
    pub(crate) fn leaving_files(&self, end: usize, max_bytes: usize) -> Vec<AttachedFile> {
        let (old, kept) = self.messages.split_at(end.min(self.messages.len()));
        let mut known: BTreeMap<String, Known> = BTreeMap::new();
        for (order, file) in self.attached.iter().enumerate() {
            let known_before = Known {
                text: file.text.clone(),
                changed: file.text.is_empty(),
                order,
            };
            known.insert(file.path.clone(), known_before);
        }
        look(&mut known, old);
        let mut still_shown = BTreeMap::new();
        look(&mut still_shown, kept);
        known.retain(|path, _| !still_shown.contains_key(path));
        let mut files: Vec<(String, Known)> = known.into_iter().collect();
        files.sort_by_key(|(_, file)| std::cmp::Reverse((file.changed, file.order)));
        let mut room = max_bytes;
        let mut out = Vec::new();
        for (path, file) in files.into_iter().take(MAX_FILES) {
            let most = room.min(max_bytes / 2);
            if most < MIN_BYTES {
                break;
            }
            let text = cut::head_and_tail(&file.text, most).unwrap_or(file.text);
            room = room.saturating_sub(text.len()).saturating_sub(path.len());
            out.push(AttachedFile { path, text });
        }
        out
    }
}

/// The block for a file that is shown after a summary.
pub(crate) fn block(file: &AttachedFile) -> Block {
    let AttachedFile { path, text } = file;
    Block::text(if text.is_empty() {
        format!("{NOTE_MARK}{path} was changed in the summarized part. Read it again before you rely on it.")
    } else {
        format!("{NOTE_MARK}{path}, as last shown in the summarized part:\n{text}")
    })
}

fn look(known: &mut BTreeMap<String, Known>, messages: &[Arc<Message>]) {
    let mut open: BTreeMap<&str, (&str, &Value)> = BTreeMap::new();
    let mut order = known.len();
    for block in messages.iter().flat_map(|message| &message.content) {
        match block {
            Block::ToolUse { id, name, input } => {
                open.insert(id, (name, input));
            }
            Block::ToolResult {
                tool_use_id,
                content,
                is_error: false,
            } => {
                let call = open.remove(tool_use_id.as_str());
                if let Some((path, text, changed)) = call.and_then(|call| learn(call, content)) {
                    order = order.saturating_add(1);
                    let changed = changed || known.get(path).is_some_and(|file| file.changed);
                    known.insert(path.to_owned(), Known { text, changed, order });
                }
            }
            _ => {}
        }
    }
}

/// The path, the content of the file as far as the call shows it, and whether the call changed it.
fn learn<'a>((name, input): (&str, &'a Value), result: &str) -> Option<(&'a str, String, bool)> {
    let field = |names: &[&str]| names.iter().find_map(|name| input.get(name)?.as_str());
    let path = field(&PATHS)?;
    match name {
        "Read" if result != CLEARED => Some((path, result.to_owned(), false)),
        "Write" => Some((path, field(&CONTENTS)?.to_owned(), true)),
        "Edit" | "MultiEdit" | "ApplyPatch" => Some((path, String::new(), true)),
        _ => None,
    }
}
