//! UndoPatch: files as they were before a change of this session.

use crate::change_set::{self, FileChange};
use crate::context::{Finished, ToolContext};
use crate::pre_image::changed;
use crate::prepared::{PathOp, Prepared, Subject};
use crate::put_back::{Wanted, compare, kept};
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::seen::{FilesSeen, Undo, UndoFile};
use agentd_protocol::ToolOutcome;

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
            Some(name) => Some(kept(&ctx.blobs, "UndoPatch: ", &file.path, name).await?),
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
    let (changes, moved) = compare(&ctx.workdir, ctx.limits.max_file_bytes, wanted)?;
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
    change_set::apply(&ctx.workdir, &prepared.permit(ctx), &changes)?;
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
