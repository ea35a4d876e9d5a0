//! Edit: replaces an exact text in a file that the session knows.

use crate::context::ToolContext;
use crate::diff::change;
use crate::matching::{Mismatch, replace};
use crate::prepared::Prepared;
use crate::read::{binary_kind, explain, locate, open, refuse_binary};
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::seen::{FilesSeen, Seen, sha256};
use crate::write::written;
use agentd_protocol::ToolOutcome;
use agentd_sandbox::{Beneath, Version};
use std::path::Path;

pub(crate) fn run(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> ToolOutcome {
    edit(prepared, ctx, abandoned).unwrap_or_else(|refusal| refusal)
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn edit(prepared: &Prepared, ctx: &ToolContext, abandoned: &Abandoned) -> Result<ToolOutcome, ToolOutcome> {
    let path = locate(prepared, ctx)?;
    let (old, version) = load(&ctx.workdir, &path, ctx.limits.max_file_bytes)?;
    require_seen(&ctx.seen, &path, &old)?;
    let (new, count) = apply(prepared, &path, &old)?;
    if abandoned.yes() {
        return Err(refuse(
            Code::Tool,
            "Edit was cancelled before it changed anything.",
        ));
    }
    ctx.workdir
        .replace(&path, &new, &version)
        .map_err(|error| explain(&ctx.workdir, &path, &error))?;
    let times = if count == 1 {
        "once".to_owned()
    } else {
        format!("{count} times")
    };
    let said = format!("Changed {} ({times} replaced).", path.display());
    Ok(written(&said, &path, Some(&old), &new))
}

/// The content after the edit, and how often the text was replaced.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn apply(prepared: &Prepared, path: &Path, old: &[u8]) -> Result<(Vec<u8>, usize), ToolOutcome> {
    let (from, to) = (prepared.text("old_string"), prepared.text("new_string"));
    replace(old, from, to, prepared.flag("replace_all")).map_err(|mismatch| match mismatch {
        Mismatch::NotFound { near } => {
            let hint = match near {
                Some((line, text)) => {
                    format!("Line {line} differs in whitespace only: {text:?}. Give `old_string` with exactly that whitespace.")
                }
                None => "Read the file again and copy the text exactly, without the line numbers.".to_owned(),
            };
            refuse(Code::NotFound, format!("Edit: `old_string` is not in {}. {hint}", path.display()))
        }
        Mismatch::NotUnique { lines } => {
            let shown: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
            let more = if lines.len() > 10 { ", ..." } else { "" };
            let text = format!(
                "Edit: `old_string` is {} times in {} (lines {}{more}). Add lines around it until it is unique, or set `replace_all` to true.",
                lines.len(),
                path.display(),
                shown.join(", ")
            );
            refuse(Code::NotUnique, text)
        }
    })
}

/// A text file of bounded size, with its version.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn load(workdir: &Beneath, path: &Path, max: u64) -> Result<(Vec<u8>, Version), ToolOutcome> {
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
        None => Ok((content, opened.version)),
    }
}

/// Whether the session knows this content.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn require_seen(seen: &FilesSeen, path: &Path, content: &[u8]) -> Result<(), ToolOutcome> {
    let name = path.display();
    match seen.check(&path.to_string_lossy(), &sha256(content)) {
        Seen::Same => Ok(()),
        Seen::Never => Err(refuse(
            Code::NotRead,
            format!("{name} exists and was not read in this session. Read it first, then change it."),
        )),
        Seen::Changed => Err(refuse(
            Code::Changed,
            format!(
                "{name} changed since it was read, by somebody else or by a command. Read it again, then change it."
            ),
        )),
    }
}

/// What the edit would do, for people, without doing it.
pub(crate) fn preview(prepared: &Prepared, workdir: &Beneath, max: u64) -> String {
    let attempt = workdir
        .relative(prepared.path())
        .map_err(|error| error.to_string())
        .and_then(|path| {
            let (old, _) = load(workdir, &path, max).map_err(|refusal| refusal.llm_text)?;
            let (new, _) = apply(prepared, &path, &old).map_err(|refusal| refusal.llm_text)?;
            Ok(change(&path.to_string_lossy(), Some(&old), &new).text)
        });
    attempt.unwrap_or_else(|why| {
        let wanted = change(
            prepared.path(),
            Some(prepared.text("old_string").as_bytes()),
            prepared.text("new_string").as_bytes(),
        );
        format!("As things are this edit fails: {why}\n{}", wanted.text)
    })
}
