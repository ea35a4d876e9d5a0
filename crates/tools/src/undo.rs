//! UndoPatch: files as they were before a change of this session.

use crate::change_set::{self, FileChange, look};
use crate::context::{Finished, ToolContext};
use crate::pre_image::changed;
use crate::prepared::{PathOp, Prepared, Subject};
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::seen::{FilesSeen, Undo, UndoFile, sha256};
use agentd_protocol::ToolOutcome;
use std::path::PathBuf;

/// One file as it shall be again.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    file: UndoFile,
    /// Absent: it was not there.
    content: Option<Vec<u8>>,
}

/// The same call with the files that it is about.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn about(mut prepared: Prepared, seen: &FilesSeen) -> Result<Prepared, ToolOutcome> {
    let undo = find(&prepared, seen)?;
    let files: Vec<&str> = undo.files.iter().map(|file| file.path.as_str()).collect();
    prepared.title = format!("UndoPatch {}: {}", undo.id, files.join(", "));
    let paths = files
        .iter()
        .map(|path| (PathOp::Write, (*path).to_owned()))
        .collect();
    prepared.subject = Subject::Paths(paths);
    Ok(prepared)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn find<'a>(prepared: &Prepared, seen: &'a FilesSeen) -> Result<&'a Undo, ToolOutcome> {
    let id = prepared.text("undo_id");
    seen.undo(id).ok_or_else(|| {
        let id: String = id.chars().take(40).collect();
        let text = format!(
            "UndoPatch: there is no change `{id}` in this session, or it is too old. What commands did cannot be undone; use git or edit the files."
        );
        refuse(Code::UndoNotFound, text)
    })
}

/// The kept contents that an undo needs.
pub(crate) async fn fetch(prepared: &Prepared, ctx: &ToolContext) -> Result<Vec<Wanted>, ToolOutcome> {
    let undo = find(prepared, &ctx.seen)?;
    let mut wanted = Vec::new();
    for file in &undo.files {
        judged(prepared, file)?;
        let content = match &file.before {
            None => None,
            Some(name) => Some(kept(ctx, file, name).await?),
        };
        wanted.push(Wanted {
            file: file.clone(),
            content,
        });
    }
    Ok(wanted)
}

/// A file that the gate did not see is not touched.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn judged(prepared: &Prepared, file: &UndoFile) -> Result<(), ToolOutcome> {
    if let Subject::Paths(paths) = &prepared.subject
        && paths
            .iter()
            .any(|(op, path)| *op == PathOp::Write && *path == file.path)
    {
        return Ok(());
    }
    let text = format!("UndoPatch: {} was not judged. Nothing was changed.", file.path);
    Err(refuse(Code::Denied, text))
}

async fn kept(ctx: &ToolContext, file: &UndoFile, name: &str) -> Result<Vec<u8>, ToolOutcome> {
    let path = &file.path;
    let lost = |why: &str| {
        let text = format!(
            "UndoPatch: the earlier content of {path} {why}, so this change cannot be undone. Nothing was changed."
        );
        refuse(Code::UndoLost, text)
    };
    match ctx.blobs.fetch(name).await {
        Ok(Some(bytes)) if sha256(&bytes) == name => Ok(bytes),
        Ok(Some(_)) => Err(lost("is damaged")),
        Ok(None) => Err(lost("was not kept")),
        Err(why) => Err(refuse(
            Code::Tool,
            format!(
                "UndoPatch: the earlier content of {path} cannot be read: {why}. Nothing was changed. Try again."
            ),
        )),
    }
}

pub(crate) fn run(
    prepared: &Prepared,
    ctx: &ToolContext,
    abandoned: &Abandoned,
    wanted: Vec<Wanted>,
) -> Finished {
    undo(prepared, ctx, abandoned, wanted).unwrap_or_else(Into::into)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn undo(
    prepared: &Prepared,
    ctx: &ToolContext,
    abandoned: &Abandoned,
    wanted: Vec<Wanted>,
) -> Result<Finished, ToolOutcome> {
    let mut changes = Vec::new();
    let mut moved = Vec::new();
    for Wanted { file, content } in wanted {
        let path = PathBuf::from(&file.path);
        let now = look(&ctx.workdir, &path, ctx.limits.max_file_bytes)?;
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
    let id = prepared.text("undo_id");
    if !moved.is_empty() && !prepared.flag("force") {
        let text = format!(
            "UndoPatch: changed since {id}: {}. Nothing was undone. Undo the later changes first, or set `force` to true to lose them.",
            moved.join(", ")
        );
        return Err(refuse(Code::UndoConflict, text));
    }
    if changes.is_empty() {
        let text = format!("UndoPatch: the files are already as they were before {id}.");
        return Err(refuse(Code::Validation, text));
    }
    abandoned.stop(&prepared.name)?;
    change_set::apply(&ctx.workdir, &changes)?;
    let list: String = changes.iter().map(listed).collect();
    let said = |undo_id: &str| format!("Undid {id}:\n{list}To undo this, too: {undo_id}\n");
    Ok(changed(said, changes))
}

fn listed(change: &FileChange) -> String {
    let letter = match (&change.before, &change.after) {
        (None, _) => 'A',
        (_, None) => 'D',
        _ => 'M',
    };
    format!("{letter} {}\n", change.path.display())
}
