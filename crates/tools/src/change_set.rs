//! Changes several files together: all of them, or none.

use crate::read::explain;
use crate::refusal::{Code, refuse};
use agentd_protocol::ToolOutcome;
use agentd_sandbox::{Beneath, SandboxError, Version, WritePermit};
use std::path::{Path, PathBuf};

/// A file before the change.
#[derive(Debug, Clone)]
pub(crate) struct Before {
    pub(crate) content: Vec<u8>,
    pub(crate) version: Version,
    /// Its permission bits.
    pub(crate) mode: u32,
}

/// The change of one file.
#[derive(Debug, Clone)]
pub(crate) struct FileChange {
    pub(crate) path: PathBuf,
    /// The file before the change; absent if it does not exist.
    pub(crate) before: Option<Before>,
    /// The content after the change; absent if the file is deleted.
    pub(crate) after: Option<Vec<u8>>,
    /// The permission bits of a new file, if they differ from the default.
    pub(crate) mode: Option<u32>,
}

/// Reads the file at a path, whatever its content. Absent if it does not exist; a link or special file is an error.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn look(workdir: &Beneath, path: &Path, max: u64) -> Result<Option<Before>, ToolOutcome> {
    match workdir.check_writable(path) {
        Ok(()) => {}
        Err(SandboxError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(explain(workdir, path, &error)),
    }
    let (content, opened) = workdir
        .read(path, max)
        .map_err(|error| explain(workdir, path, &error))?;
    if opened.real != path {
        let text = format!("{} became a symbolic link just now. Try again.", path.display());
        return Err(refuse(Code::Changed, text));
    }
    Ok(Some(Before {
        content,
        version: opened.version,
        mode: opened.mode,
    }))
}

/// Applies all changes. If one fails, the earlier ones are rolled back and the error says so.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn apply(
    workdir: &Beneath,
    permit: &WritePermit,
    changes: &[FileChange],
) -> Result<(), ToolOutcome> {
    let mut made = Vec::new();
    for (done, change) in changes.iter().enumerate() {
        let fresh = missing_parents(workdir, change);
        let written = write(workdir, permit, change);
        // Directories may have been created even when the file was not.
        made.extend(fresh);
        if let Err(error) = written {
            let mut outcome = explain(workdir, &change.path, &error);
            let stuck = take_back(workdir, permit, changes.get(..done).unwrap_or_default(), &made);
            outcome.llm_text.push_str(&after_failure(&stuck));
            return Err(outcome);
        }
    }
    Ok(())
}

fn write(workdir: &Beneath, permit: &WritePermit, change: &FileChange) -> Result<(), SandboxError> {
    let path = permit.judged(&change.path)?;
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => workdir.replace(path, after, &before.version),
        (Some(before), None) => workdir.remove(path, &before.version),
        (None, Some(after)) => match change.mode {
            Some(mode) => workdir.create_with_mode(path, after, mode),
            None => workdir.create_new(path, after),
        },
        (None, None) => Ok(()),
    }
}

/// The directories that a change creates, the outermost first.
fn missing_parents(workdir: &Beneath, change: &FileChange) -> Vec<PathBuf> {
    if change.before.is_some() || change.after.is_none() {
        return Vec::new();
    }
    let missing = |parent: &&Path| {
        !parent.as_os_str().is_empty() && matches!(workdir.entry(parent), Err(SandboxError::NotFound { .. }))
    };
    let mut parents: Vec<PathBuf> = change
        .path
        .ancestors()
        .skip(1)
        .take_while(missing)
        .map(Path::to_owned)
        .collect();
    parents.reverse();
    parents
}

/// Rolls changes back, the last one first. Returns those that could not be rolled back.
fn take_back(
    workdir: &Beneath,
    permit: &WritePermit,
    changes: &[FileChange],
    made: &[PathBuf],
) -> Vec<String> {
    let mut stuck = Vec::new();
    for change in changes.iter().rev() {
        if let Err(why) = take_one_back(workdir, permit, change) {
            stuck.push(format!("{} ({why})", change.path.display()));
        }
    }
    for directory in made.iter().rev() {
        // Another process may have created files in it meanwhile; then it stays.
        let _ = permit
            .judged(directory)
            .and_then(|directory| workdir.remove_directory(directory));
    }
    stuck
}

fn take_one_back(workdir: &Beneath, permit: &WritePermit, change: &FileChange) -> Result<(), String> {
    let said = |error: SandboxError| error.to_string();
    let path = permit.judged(&change.path).map_err(said)?;
    let Some(after) = &change.after else {
        let Some(before) = &change.before else {
            return Ok(());
        };
        return workdir
            .create_with_mode(path, &before.content, before.mode)
            .map_err(said);
    };
    let max = u64::try_from(after.len()).unwrap_or(u64::MAX);
    let (now, opened) = workdir.read(&change.path, max).map_err(said)?;
    if now != *after {
        return Err("someone else changed it in the meantime".to_owned());
    }
    match &change.before {
        Some(before) => workdir.replace(path, &before.content, &opened.version),
        None => workdir.remove(path, &opened.version),
    }
    .map_err(said)
}

fn after_failure(stuck: &[String]) -> String {
    if stuck.is_empty() {
        return " Nothing was changed.".to_owned();
    }
    format!(
        " Earlier changes were reverted, except: {}. Check these files.",
        stuck.join(", ")
    )
}
