//! Edit and MultiEdit: replace exact texts in a file that the session knows.

use crate::catalog::object;
use crate::change_set::{self, Before, FileChange};
use crate::context::{Finished, ToolContext, ToolLimits};
use crate::diff::change;
use crate::edit_arguments::differ;
use crate::matching::{Mismatch, Near, replace};
use crate::pre_image::changed;
use crate::prepared::Prepared;
use crate::read::{binary_kind, explain, locate, open, refuse_binary};
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::seen::{FilesSeen, Seen, sha256};
use crate::spec::ToolSpec;
use crate::tool::{About, FILE_WORDS, NEW_WORDS, OLD_WORDS, Runs, Spelling, Tool};
use agentd_protocol::{EffectClass, ToolOutcome};
use agentd_sandbox::Beneath;
use serde_json::{Value, json};
use std::path::Path;

/// Replaces one exact text of a file.
pub(crate) struct Edit;

impl Tool for Edit {
    fn name(&self) -> &'static str {
        "Edit"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["edit_file", "str_replace", "replace_in_file", "search_replace", "editfile"],
            title: "Edit a file".into(),
            description: "Replaces an exact text in a file that you have read. `old_string` must match with its whitespace, without the line numbers of Read, and \
                          must occur once unless `replace_all` is true."
                .to_owned(),
            schema: object(
                &json!({
                    "file_path": { "type": "string", "minLength": 1 },
                    "old_string": { "type": "string", "minLength": 1, "description": "To make a file, or to replace all of it, use Write" },
                    "new_string": { "type": "string" },
                    "replace_all": { "type": "boolean" }
                }),
                &["file_path", "old_string", "new_string"],
            ),
            example: json!({ "file_path": "src/main.rs", "old_string": "let a = 1;", "new_string": "let a = 2;" }),
            effect: EffectClass::Write,
            idempotent: false,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        About::writes("file_path", input)
    }

    fn runs(&self) -> Runs {
        Runs::Files(run)
    }

    fn spellings(&self) -> &'static [Spelling] {
        &[
            ("file_path", FILE_WORDS),
            ("old_string", OLD_WORDS),
            ("new_string", NEW_WORDS),
        ]
    }

    fn check(&self, input: &Value) -> Result<(), ToolOutcome> {
        differ("Edit", input, "", ["old_string", "new_string"])
    }

    fn preview(&self, call: &Prepared, workdir: &Beneath, max: u64) -> Option<String> {
        Some(preview(call, workdir, max))
    }
}

pub(crate) fn run(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Finished {
    edit(prepared, ctx, abandoned).unwrap_or_else(Into::into)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn edit(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Result<Finished, ToolOutcome> {
    let path = locate(prepared, ctx)?;
    let before = load(&ctx.workdir, &path, ctx.limits.max_file_bytes)?;
    require_seen(&ctx.seen, &path, &before.content)?;
    let (new, count) = apply(prepared, &path, &before.content)?;
    abandoned.stop(&prepared.name)?;
    let change = FileChange {
        path: path.clone(),
        before: Some(before),
        after: Some(new),
        mode: None,
    };
    change_set::apply(&ctx.workdir, &prepared.permit(ctx), std::slice::from_ref(&change))?;
    let said = |undo_id: &str| {
        format!(
            "Changed {} ({} replaced). Undo id: {undo_id}",
            path.display(),
            times(count)
        )
    };
    Ok(changed(&ctx.call.to_string(), said, vec![change]))
}

pub(crate) fn times(count: usize) -> String {
    if count == 1 {
        "once".to_owned()
    } else {
        format!("{count} times")
    }
}

/// One text to replace.
struct Replacement<'a> {
    old: &'a str,
    new: &'a str,
    all: bool,
    /// Names the replacement when there are several.
    which: String,
}

fn replacements(prepared: &Prepared) -> Vec<Replacement<'_>> {
    match prepared.input.get("edits").and_then(Value::as_array) {
        None => vec![replacement(&prepared.input, String::new())],
        Some(edits) => edits
            .iter()
            .enumerate()
            .map(|(at, edit)| replacement(edit, format!(" of edit {}", at + 1)))
            .collect(),
    }
}

fn replacement(input: &Value, which: String) -> Replacement<'_> {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    Replacement {
        old: text("old_string"),
        new: text("new_string"),
        all: input
            .get("replace_all")
            .and_then(Value::as_bool)
            .unwrap_or_default(),
        which,
    }
}

/// The content after all edits, each applied to the result of the one before, and the number of replacements.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn apply(prepared: &Prepared, path: &Path, old: &[u8]) -> Result<(Vec<u8>, usize), ToolOutcome> {
    let (mut content, mut count) = (old.to_vec(), 0);
    for one in replacements(prepared) {
        let (next, times) = replace(&content, one.old, one.new, one.all)
            .map_err(|mismatch| misses(&prepared.name, &one, path, mismatch))?;
        (content, count) = (next, count + times);
    }
    if content == old {
        let text = format!(
            "{}: the edits together change nothing in {}.",
            prepared.name,
            path.display()
        );
        return Err(refuse(Code::Validation, text));
    }
    Ok((content, count))
}

fn misses(tool: &str, one: &Replacement<'_>, path: &Path, mismatch: Mismatch) -> ToolOutcome {
    let (which, path) = (&one.which, path.display());
    match mismatch {
        Mismatch::NotFound { near } => {
            let hint = not_found_hint(near, "old_string");
            refuse(
                Code::NotFound,
                format!("{tool}: `old_string`{which} is not in {path}. {hint}"),
            )
        }
        Mismatch::NotUnique { lines } => {
            let shown = first_lines(&lines);
            let text = format!(
                "{tool}: `old_string`{which} is {} times in {path} (lines {shown}). Add lines around it until it is unique, or set `replace_all` to true.",
                lines.len(),
            );
            refuse(Code::NotUnique, text)
        }
    }
}

/// Advice for a text that is not in the file.
pub(crate) fn not_found_hint(near: Option<Near>, field: &str) -> String {
    match near {
        Some(Near {
            line,
            text,
            wanted: None,
        }) => format!(
            "Line {line} differs in whitespace only: {text:?}. Give `{field}` with exactly that whitespace."
        ),
        Some(Near {
            line,
            text,
            wanted: Some(wanted),
        }) => format!("The lines before are the same, but line {line} is {text:?}, not {wanted:?}."),
        None => "Read the file again and copy the text exactly, without the line numbers.".to_owned(),
    }
}

/// The first few of many line numbers.
pub(crate) fn first_lines(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
    let more = if lines.len() > 10 { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Reads a text file of bounded size, unchanged.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn load(workdir: &Beneath, path: &Path, max: u64) -> Result<Before, ToolOutcome> {
    let opened = open(workdir, path)?;
    let (content, opened) = match workdir.read(path, max) {
        Ok(read) if read.1.version == opened.version => read,
        Ok(_) => {
            return Err(refuse(
                Code::Changed,
                format!("{} is changing right now. Try again.", path.display()),
            ));
        }
        Err(error) => return Err(explain(workdir, path, &error)),
    };
    match binary_kind(&content) {
        Some(kind) => Err(refuse_binary(path, kind, opened.bytes)),
        None => Ok(Before {
            content,
            version: opened.version,
            mode: opened.mode,
        }),
    }
}

/// Refuses unless the session knows this content.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn require_seen(seen: &FilesSeen, path: &Path, content: &[u8]) -> Result<(), ToolOutcome> {
    unless_seen(seen.check(&path.to_string_lossy(), &sha256(content)), path)
}

/// The refusal for a file that the session does not know.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn unless_seen(seen: Seen, path: &Path) -> Result<(), ToolOutcome> {
    let name = path.display();
    match seen {
        Seen::Same => Ok(()),
        Seen::Never => Err(refuse(
            Code::NotRead,
            format!(
                "{name} exists, but you have not read it in this session. Read it first, then change it."
            ),
        )),
        Seen::Changed => Err(refuse(
            Code::Changed,
            format!(
                "{name} changed after you read it, by someone else or by a command. Read it again, then change it."
            ),
        )),
    }
}

/// Shows a person what the edit would do, without doing it.
pub(crate) fn preview(prepared: &Prepared, workdir: &Beneath, max: u64) -> String {
    let attempt = workdir
        .relative(prepared.path())
        .map_err(|error| error.to_string())
        .and_then(|path| {
            let old = load(workdir, &path, max)
                .map_err(|refusal| refusal.llm_text)?
                .content;
            let (new, _) = apply(prepared, &path, &old).map_err(|refusal| refusal.llm_text)?;
            Ok(change(&path.to_string_lossy(), Some(&old), Some(&new)).text)
        });
    attempt.unwrap_or_else(|why| {
        let wanted: String = replacements(prepared)
            .iter()
            .map(|one| {
                change(
                    prepared.path(),
                    Some(one.old.as_bytes()),
                    Some(one.new.as_bytes()),
                )
                .text
            })
            .collect();
        format!("In the current state, this edit fails: {why}\n{wanted}")
    })
}
