//! Restores earlier versions of files: for the tool UndoPatch, and for people who undo or go back.

use crate::change_set::{self, FileChange, look};
use crate::context::BlobSource;
use crate::pre_image::{PreImage, changed};
use crate::refusal::{Code, refuse};
use crate::seen::{UndoFile, sha256};
use agentd_protocol::{FileBack, FileChanged, HistoryFailed, HistoryStarted, ToolOutcome, UndoApplied};
use agentd_sandbox::{Beneath, WritePermit};
use serde_json::Value;
use std::path::PathBuf;

/// A file to restore.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) file: UndoFile,
    /// Absent: the file did not exist.
    pub(crate) content: Option<Vec<u8>>,
}

/// The stored contents for restoring files.
#[derive(Debug)]
pub struct Contents(Vec<Wanted>);

/// Fetches the stored contents of these files. The error says what is lost.
///
/// # Errors
/// A content was not stored, or cannot be read.
pub async fn kept_content(files: &[FileBack], blobs: &BlobSource) -> Result<Contents, HistoryFailed> {
    let mut wanted = Vec::new();
    for file in files {
        let content = match &file.wanted {
            None => None,
            Some(name) => Some(kept(blobs, "", &file.path, name).await.map_err(failed)?),
        };
        let file = UndoFile {
            path: file.path.clone(),
            before: file.wanted.clone(),
            after: file.now.clone(),
            mode: file.mode,
        };
        wanted.push(Wanted { file, content });
    }
    Ok(Contents(wanted))
}

/// Restores files: all of them, or none. Skips files that are already restored, so it can be repeated after a crash.
/// Blocks its thread.
///
/// # Errors
/// A file was changed since and `force` is not set, or cannot be written.
pub fn put_back(
    started: &HistoryStarted,
    Contents(wanted): Contents,
    (workdir, max_bytes): (&Beneath, u64),
    of: &str,
) -> Result<(UndoApplied, Vec<PreImage>), HistoryFailed> {
    let (changes, moved) = compare(workdir, max_bytes, wanted).map_err(failed)?;
    if !moved.is_empty() && !started.force {
        let message = format!(
            "these files have changed since: {}. Nothing was changed.",
            moved.join(", ")
        );
        return Err(failed(refuse(Code::UndoConflict, message)));
    }
    // A person asked for this, so protected files are restored, too.
    let permit = WritePermit::approved(changes.iter().map(|change| change.path.clone()).collect());
    change_set::apply(workdir, &permit, &changes).map_err(failed)?;
    let mut applied = UndoApplied {
        undoes: started.undoes.clone(),
        undoes_below: started.undoes_below.clone(),
        undo_id: String::new(),
        changes: Vec::new(),
        trees: None,
        paths: Vec::new(),
    };
    if changes.is_empty() {
        return Ok((applied, Vec::new()));
    }
    let done = changed(of, |undo_id| undo_id.to_owned(), changes);
    applied.undo_id = done.outcome.llm_text;
    let listed = done
        .outcome
        .details
        .as_ref()
        .and_then(|details| details.get("changes"));
    applied.changes = listed.map(files).unwrap_or_default();
    Ok((applied, done.pre_images))
}

fn files(listed: &Value) -> Vec<FileChanged> {
    let listed = listed.as_array().map(Vec::as_slice).unwrap_or_default();
    let read = |change: &Value| serde_json::from_value(change.clone()).ok();
    listed.iter().filter_map(read).collect()
}

fn failed(outcome: ToolOutcome) -> HistoryFailed {
    let code = outcome
        .details
        .as_ref()
        .and_then(|details| details.get("code")?.as_str());
    HistoryFailed {
        code: code.unwrap_or(Code::Tool.as_str()).to_owned(),
        message: outcome.llm_text,
    }
}

/// The current content of a file and its hash; absent if the file does not exist. Blocks its thread.
///
/// # Errors
/// Why it cannot be read.
pub fn file_now(workdir: &Beneath, path: &str, max_bytes: u64) -> Result<Option<(Vec<u8>, String)>, String> {
    let found = look(workdir, path.as_ref(), max_bytes).map_err(|outcome| outcome.llm_text)?;
    Ok(found.map(|found| {
        let hash = sha256(&found.content);
        (found.content, hash)
    }))
}

/// The files to write, and those that changed since the change that is undone.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn compare(
    workdir: &Beneath,
    max_bytes: u64,
    wanted: Vec<Wanted>,
) -> Result<(Vec<FileChange>, Vec<String>), ToolOutcome> {
    let mut changes = Vec::new();
    let mut moved = Vec::new();
    for Wanted { file, content } in wanted {
        let path = PathBuf::from(&file.path);
        let now = look(workdir, &path, max_bytes)?;
        let hash = now.as_ref().map(|now| sha256(&now.content));
        if hash == file.before {
            continue;
        }
        if hash != file.after {
            moved.push(file.path.clone());
        }
        changes.push(FileChange {
            path,
            before: now,
            after: content,
            mode: file.mode,
        });
    }
    Ok((changes, moved))
}

/// Fetches a stored content by its name.
pub(crate) async fn kept(
    blobs: &BlobSource,
    who: &str,
    path: &str,
    name: &str,
) -> Result<Vec<u8>, ToolOutcome> {
    let lost = |why: &str| {
        let text = format!(
            "{who}the earlier content of {path} {why}, so this change cannot be undone. Nothing was changed."
        );
        refuse(Code::UndoLost, text)
    };
    match blobs.fetch(name).await {
        Ok(Some(bytes)) if sha256(&bytes) == name => Ok(bytes),
        Ok(Some(_)) => Err(lost("is damaged")),
        Ok(None) => Err(lost("was not kept")),
        Err(why) => Err(refuse(
            Code::Tool,
            format!("{who}cannot read the earlier content of {path}: {why}. Nothing was changed. Try again."),
        )),
    }
}
