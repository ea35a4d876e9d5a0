//! UndoPatch: restores files as they were before a change of this session.

use crate::catalog::object;
use crate::change_set::{self, FileChange};
use crate::context::{Finished, ToolContext, ToolLimits};
use crate::pre_image::changed;
use crate::prepared::Prepared;
use crate::put_back::{Wanted, compare, kept};
use crate::refusal::{Code, refuse};
use crate::run::{Abandoned, on_files};
use crate::seen::{FilesSeen, Undo, UndoFile};
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Tool, word};
use agentd_policy::Subject;
use agentd_protocol::{EffectClass, ToolOutcome};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Undoes a change of this session.
pub(crate) struct UndoPatch;

impl Tool for UndoPatch {
    fn name(&self) -> &'static str {
        "UndoPatch"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["undo_patch", "undo_edit"],
            title: "Undo a change of files".into(),
            description: "Undoes a change that Write, Edit, MultiEdit or ApplyPatch made in this session. Refuses if a file has changed since."
                .to_owned(),
            schema: object(
                &json!({
                    "undo_id": { "type": "string", "minLength": 1, "description": "From the result of the change" },
                    "force": { "type": "boolean", "description": "Undo later changes of the files, too" }
                }),
                &["undo_id"],
            ),
            example: json!({ "undo_id": "0123456789ab" }),
            effect: EffectClass::Write,
            idempotent: false,
            server: None,
        }
    }

    /// Only the session knows the files of the change: see `knowing`. Without it the tool does nothing.
    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::nothing(word(input, "undo_id")))
    }

    fn runs(&self) -> Runs {
        Runs::Worker(|call, ctx| Box::pin(start(call, ctx)))
    }

    fn knowing(&self, call: Prepared, seen: &FilesSeen) -> Result<Prepared, ToolOutcome> {
        about(call, seen)
    }
}

/// The same call with the files of the change.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn about(mut prepared: Prepared, seen: &FilesSeen) -> Result<Prepared, ToolOutcome> {
    let undo = find(&prepared, seen)?;
    let files: Vec<&str> = undo.files.iter().map(|file| file.path.as_str()).collect();
    prepared.title = format!("UndoPatch {}: {}", undo.id, files.join(", "));
    let paths = files.iter().map(|path| (*path).to_owned()).collect();
    prepared.subject = Subject::Paths { write: true, paths };
    Ok(prepared)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn find<'a>(prepared: &Prepared, seen: &'a FilesSeen) -> Result<&'a Undo, ToolOutcome> {
    let id = prepared.text("undo_id");
    seen.undo(id).ok_or_else(|| {
        let id: String = id.chars().take(40).collect();
        let text = format!(
            "UndoPatch: this session has no change `{id}`, or it is too old. UndoPatch cannot revert what commands did; use git or edit the files."
        );
        refuse(Code::UndoNotFound, text)
    })
}

async fn start(prepared: &Prepared, ctx: &ToolContext) -> Finished {
    match fetch(prepared, ctx).await {
        Ok(wanted) => {
            let work = move |call: &Prepared, ctx: &ToolContext, abandoned: &Abandoned| {
                undo(call, ctx, abandoned, wanted).unwrap_or_else(Into::into)
            };
            on_files(prepared.clone(), ctx.clone(), work).await
        }
        Err(refusal) => refusal.into(),
    }
}

/// Fetches the stored contents that an undo needs.
async fn fetch(prepared: &Prepared, ctx: &ToolContext) -> Result<Vec<Wanted>, ToolOutcome> {
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

/// Refuses a file that the gate has not judged.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn judged(prepared: &Prepared, file: &UndoFile) -> Result<(), ToolOutcome> {
    if prepared.written().contains(&PathBuf::from(&file.path)) {
        return Ok(());
    }
    let text = format!("UndoPatch: {} was not judged. Nothing was changed.", file.path);
    Err(refuse(Code::Denied, text))
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
    Ok(changed(&ctx.call.to_string(), said, changes))
}

fn listed(change: &FileChange) -> String {
    let letter = match (&change.before, &change.after) {
        (None, _) => 'A',
        (_, None) => 'D',
        _ => 'M',
    };
    format!("{letter} {}\n", change.path.display())
}
