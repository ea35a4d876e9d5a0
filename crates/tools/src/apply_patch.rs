//! ApplyPatch: applies one patch to several files, all or none.

use crate::catalog::object;
use crate::change_set::{self, Before, FileChange, look};
use crate::context::{Finished, ToolContext, ToolLimits};
use crate::diff::change;
use crate::edit::{first_lines, unless_seen};
use crate::edit_arguments::one_form;
use crate::patch::{Known, Malformed, Mark, Misfit, Plan, Refused, parse, plan};
use crate::pre_image::changed;
use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::replacement;
use crate::run::Abandoned;
use crate::seen::{Seen, sha256};
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Spelling, Tool};
use agentd_policy::Subject;
use agentd_protocol::{EffectClass, ToolOutcome};
use agentd_sandbox::Beneath;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Applies a patch to several files, or replaces one text by similarity.
pub(crate) struct ApplyPatch;

impl Tool for ApplyPatch {
    fn name(&self) -> &'static str {
        "ApplyPatch"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["apply_patch", "patch"],
            title: "Apply a patch".into(),
            description: "Changes several files at once, all or none. Give `patch` in this form:\n\
                          *** Begin Patch\n*** Add File: PATH\n+line\n*** Update File: PATH\n*** Move to: NEWPATH (optional)\n@@ a line before, such as the function (optional)\n \
                          unchanged line\n-old line\n+new line\n*** Delete File: PATH\n*** End Patch\n\
                          or `path`, `old` and `new` to replace one text, by similarity if `fuzzy`. Paths are relative. Read a file before you replace it by an \
                          addition or a move; the hunks of a file that you have not read must fit in one place only."
                .to_owned(),
            schema: object(
                &json!({
                    "patch": { "type": "string", "minLength": 1 },
                    "path": { "type": "string", "minLength": 1, "description": "Without `patch`" },
                    "old": { "type": "string", "minLength": 1, "description": "Without `patch`" },
                    "new": { "type": "string", "description": "Without `patch`" },
                    "expected_replacements": { "type": "integer", "minimum": 1, "description": "Default 1" },
                    "fuzzy": { "type": "boolean", "description": "Accept lines that are similar to `old`" },
                    "min_similarity": { "type": "number", "minimum": 0.5, "maximum": 1, "description": "Default 0.92" }
                }),
                &[],
            ),
            example: json!({
                "patch": "*** Begin Patch\n*** Update File: src/main.rs\n@@ fn main() {\n-    let a = 1;\n+    let a = 2;\n*** End Patch"
            }),
            effect: EffectClass::Write,
            idempotent: false,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        match input.get("patch").and_then(Value::as_str) {
            Some(patch) => about(patch),
            None => About::writes("path", input),
        }
    }

    fn runs(&self) -> Runs {
        Runs::Files(run)
    }

    fn spellings(&self) -> &'static [Spelling] {
        &[
            ("patch", &["input", "patch_text", "patchText", "diff"]),
            ("path", &["file_path", "file", "filePath"]),
            (
                "old",
                &["old_string", "old_text", "old_str", "oldText", "oldString"],
            ),
            (
                "new",
                &["new_string", "new_text", "new_str", "newText", "newString"],
            ),
        ]
    }

    fn check(&self, input: &Value) -> Result<(), ToolOutcome> {
        one_form(input)
    }

    fn preview(&self, call: &Prepared, workdir: &Beneath, max: u64) -> Option<String> {
        Some(match call.subject {
            Subject::Paths { .. } => preview(call, workdir, max),
            _ => replacement::preview(call, workdir, max),
        })
    }
}

/// The subject of a patch: every path in it.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn about(patch: &str) -> Result<About, ToolOutcome> {
    let paths = parse(patch).map_err(|malformed| not_taken(&malformed))?.paths();
    let name = |path: &PathBuf| path.to_string_lossy().into_owned();
    let about = match paths.as_slice() {
        [] => String::new(),
        [one] => name(one),
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
    };
    Ok(About::changes(paths.iter().map(name).collect(), about))
}

fn run(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Finished {
    if prepared.input.get("patch").is_none() {
        return replacement::run(prepared, ctx, abandoned);
    }
    apply(prepared, ctx, abandoned).unwrap_or_else(Into::into)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn apply(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Result<Finished, ToolOutcome> {
    let know = |path: &Path, content: &[u8]| ctx.seen.check(&path.to_string_lossy(), &sha256(content));
    let (changes, plan) = changes(prepared, &ctx.workdir, ctx.limits.max_file_bytes, know)?;
    abandoned.stop(&prepared.name)?;
    change_set::apply(&ctx.workdir, &prepared.permit(ctx), &changes)?;
    let list: String = plan
        .listed
        .iter()
        .map(|(mark, path)| listed(*mark, path, &plan))
        .collect();
    Ok(changed(
        &ctx.call.to_string(),
        |undo_id| format!("Applied the patch:\n{list}Undo id: {undo_id}\n"),
        changes,
    ))
}

fn listed(mark: Mark, path: &Path, plan: &Plan) -> String {
    let letter = match mark {
        Mark::Added => 'A',
        Mark::Modified => 'M',
        Mark::Deleted => 'D',
    };
    let from = plan.moved_from.get(path).filter(|_| mark == Mark::Modified);
    let from = from.map(|from| format!(" (moved from {})", from.display()));
    format!("{letter} {}{}\n", path.display(), from.unwrap_or_default())
}

/// The changes that the patch makes to the files as they are now.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn changes(
    prepared: &Prepared,
    workdir: &Beneath,
    max: u64,
    know: impl Fn(&Path, &[u8]) -> Seen,
) -> Result<(Vec<FileChange>, Plan), ToolOutcome> {
    let patch = parse(prepared.text("patch")).map_err(|malformed| not_taken(&malformed))?;
    let mut found: BTreeMap<PathBuf, Option<Before>> = BTreeMap::new();
    for path in patch.paths() {
        let before = look(workdir, &path, max)?;
        found.insert(path, before);
    }
    let known = found.iter().map(|(path, before)| {
        let known = before.as_ref().map(|before| Known {
            content: &before.content,
            seen: know(path, &before.content),
        });
        (path.clone(), known)
    });
    let known: BTreeMap<PathBuf, Option<Known<'_>>> = known.collect();
    let plan = plan(&patch, &known).map_err(|refused| not_possible(workdir, &refused))?;
    let modes: BTreeMap<PathBuf, u32> = found
        .iter()
        .filter_map(|(path, before)| Some((path.clone(), before.as_ref()?.mode)))
        .collect();
    let mut changes = Vec::new();
    for (path, after) in &plan.files {
        let bytes = after.as_ref().map_or(0, Vec::len);
        if u64::try_from(bytes).unwrap_or(u64::MAX) > max {
            let text = format!(
                "ApplyPatch: {} would have {bytes} bytes; the limit is {max}. Nothing was changed.",
                path.display()
            );
            return Err(refuse(Code::TooLarge, text));
        }
        changes.push(FileChange {
            path: path.clone(),
            before: found.remove(path).flatten(),
            after: after.clone(),
            mode: plan
                .moved_from
                .get(path)
                .and_then(|from| modes.get(from))
                .copied(),
        });
    }
    Ok((changes, plan))
}

fn not_taken(malformed: &Malformed) -> ToolOutcome {
    match malformed {
        Malformed::Line { at, why } => refuse(
            Code::InvalidArgs,
            format!("ApplyPatch: line {at} of the patch: {why}. Nothing was changed."),
        ),
        Malformed::Outside { path } => refuse(
            Code::Denied,
            format!(
                "ApplyPatch: `{path}` is absolute or leads outside the working directory. Paths in a patch are relative to it. Nothing was changed."
            ),
        ),
        Malformed::TooMuch { what, found, max } => refuse(
            Code::TooLarge,
            format!(
                "ApplyPatch: the patch has {found} {what} or more; the limit is {max}. Split it. Nothing was changed."
            ),
        ),
    }
}

fn not_possible(workdir: &Beneath, refused: &Refused) -> ToolOutcome {
    let mut outcome = match refused {
        Refused::Missing(path) => {
            let error = agentd_sandbox::SandboxError::NotFound {
                path: path.to_string_lossy().into_owned(),
            };
            crate::read::explain(workdir, path, &error)
        }
        Refused::Unknown { path, seen } => match unless_seen(*seen, path) {
            Err(outcome) => outcome,
            Ok(()) => refuse(Code::Exists, format!("{} already exists.", path.display())),
        },
        Refused::Binary(path) => refuse(
            Code::Binary,
            format!(
                "{} is not a text file, so it has no lines to patch.",
                path.display()
            ),
        ),
        Refused::Misfit { path, misfit } => misses(path, misfit),
        Refused::Same => refuse(
            Code::Validation,
            "ApplyPatch: the patch would change nothing: all files already have that content.",
        ),
    };
    outcome.llm_text.push_str(" Nothing was changed.");
    outcome
}

fn misses(path: &Path, misfit: &Misfit) -> ToolOutcome {
    let path = path.display();
    match misfit {
        Misfit::Context { at, line } => refuse(
            Code::NotFound,
            format!(
                "ApplyPatch: the hunk in line {at} of the patch looks for the line {line:?}, which is not in {path} (after the hunk before). Read the file and copy the line."
            ),
        ),
        Misfit::Lines { at, differs, at_end } => {
            let place = if *at_end { "at the end of" } else { "in" };
            let hint = match differs {
                Some((number, there, wanted)) => {
                    format!(
                        "The first lines match, but line {number} of the file is {there:?} where the hunk has {wanted:?}."
                    )
                }
                None => "No line of the file is similar to the first line of the hunk.".to_owned(),
            };
            refuse(
                Code::NotFound,
                format!(
                    "ApplyPatch: the lines of the hunk in line {at} of the patch are not {place} {path} (after the hunk before). {hint} Read the file and make the patch from its lines."
                ),
            )
        }
        Misfit::Several { at, lines } => refuse(
            Code::NotUnique,
            format!(
                "ApplyPatch: the hunk in line {at} of the patch fits {path} in {} places (lines {}). Add surrounding lines, or `@@` with a line before it, or Read the file first: then the first match is used.",
                lines.len(),
                first_lines(lines)
            ),
        ),
        Misfit::Nowhere { at } => refuse(
            Code::NotRead,
            format!(
                "ApplyPatch: the hunk in line {at} of the patch only adds lines and does not say where in {path}. Read the file first, and they are added at its end; or add a line before them."
            ),
        ),
    }
}

/// Shows a person what the patch would do, without applying it.
fn preview(prepared: &Prepared, workdir: &Beneath, max: u64) -> String {
    // Ignores whether the session has read the files: a person sees what the patch is meant to do.
    match changes(prepared, workdir, max, |_, _| Seen::Same) {
        Ok((changes, _)) => changes
            .iter()
            .map(|one| {
                let before = one.before.as_ref().map(|before| before.content.as_slice());
                change(&one.path.to_string_lossy(), before, one.after.as_deref()).text
            })
            .collect(),
        Err(why) => format!(
            "In the current state, this patch fails: {}\n{}",
            why.llm_text,
            prepared.text("patch")
        ),
    }
}
